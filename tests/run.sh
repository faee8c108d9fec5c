#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#   tests/run.sh             release build, all tests
#   tests/run.sh --all       the same, opens our traces in the programs that people open traces with, and sweeps under MPI
#   tests/run.sh asan [FOLDER]...
#                            all tests, or those of these folders, under address and undefined-behaviour sanitizers; where
#                            there is a release build, both builds, by two compilers, give equal bytes
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- release
preset=$1
packages=(experiments/packages.txt)
clients=
if [ "$preset" = --all ]; then
  preset=release
  packages+=(tests/clients/packages.txt)
  clients=tests/clients/run.sh
fi
experiments/install.sh "${packages[@]}"
IFS=';'
cmake --preset "$preset" -D "MOELINE_TEST_FOLDERS=${*:2}" >/dev/null
unset IFS
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)"
# A test of ctest is a file of cases.
awk -F'[:|]' '/^\[doctest\] test cases:/ { cases += $2 } /^\[doctest\] assertions:/ { assertions += $2 }
  /skipped: / { print } END { print cases " test cases, " assertions " assertions" }' \
  "build/$preset/Testing/Temporary/LastTest.log"
if [ "$preset" = asan ] && [ -e build/release/moeline ]; then tests/determinism.sh build/{release,asan}/moeline; fi
if [ -n "$clients" ]; then "$clients"; tests/mpi/run.sh; fi
