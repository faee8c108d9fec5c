#!/usr/bin/env bash
# Kills commands that write, 200 times (or so many) at random moments, and looks at what is left: killed_test.cpp.
set -euo pipefail
cd "$(dirname "$0")/../.."
MOELINE_KILLS=${1:-200} build/release/tests/moeline_tests --source-file='*killed_test*'
