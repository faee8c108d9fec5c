#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#   tests/run.sh             release build, all tests
#   tests/run.sh --all       the same, opens our traces in the programs that people open traces with, and sweeps under MPI
#   tests/run.sh asan        all tests under address and undefined-behaviour sanitizers; where there is a release build,
#                            both builds, by two compilers, give equal bytes
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
packages=(experiments/packages.txt)
clients=
if [ "$preset" = --all ]; then
  preset=release
  packages+=(tests/clients/packages.txt)
  clients=tests/clients/run.sh
fi
experiments/install.sh "${packages[@]}"
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)"
if [ "$preset" = asan ] && [ -e build/release/moeline ]; then tests/determinism.sh build/{release,asan}/moeline; fi
if [ -n "$clients" ]; then "$clients"; tests/mpi/run.sh; fi
