#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#   tests/run.sh             release build, all tests
#   tests/run.sh --all       the same, and opens our traces in the programs that people open traces with
#   tests/run.sh asan        all tests under address and undefined-behaviour sanitizers
set -euo pipefail
cd "$(dirname "$0")/.."
clients=()
if [ "${1:-}" = --all ]; then
  clients=(tests/clients/packages.txt)
  shift
fi
preset=${1:-release}
experiments/install.sh experiments/packages.txt "${clients[@]}"
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)"
if [ "$preset" = release ]; then tests/determinism.sh build/release/moeline; fi
if [ ${#clients[@]} -gt 0 ]; then tests/clients/run.sh; fi
