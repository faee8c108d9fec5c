#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#   tests/run.sh             release build, all tests
#   tests/run.sh asan        the same under address and undefined-behaviour sanitizers
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
experiments/install.sh
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)"
if [ "$preset" = release ]; then tests/determinism.sh build/release/moeline; fi
