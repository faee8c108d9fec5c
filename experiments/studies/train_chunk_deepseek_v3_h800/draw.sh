#!/usr/bin/env bash
# Draws the first two layers of the chunk, overlapped and sequential on one time scale, as timeline.svg: one draw, rank 0.
set -euo pipefail
cd "$(dirname "$0")"
../../../build/release/moeline simulate scenario.yaml --set layers=2 --set 'routing={distribution: balanced}' \
  --svg timeline.svg >/dev/null
