#!/usr/bin/env bash
# A study under Open MPI's mpirun, and MPICH's where it is installed: the ranks' shares, merged, are the table of one
# process to the byte. Installs Open MPI's, needs build/release/moeline. A launcher that cannot be had is skipped, and
# says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
moeline=build/release/moeline
study=experiments/studies/decode_ep_by_batch_h800/study.yaml
out=build/mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1  # containers have no other user
experiments/install.sh tests/mpi/packages.txt || true
rm -rf "$out"
mkdir -p "$out"
"$moeline" sweep "$study" -o "$out/whole.sqlite" --format csv >"$out/whole.csv" 2>"$out/log"

fail() { echo "$1" >&2; cat "$out/log" >&2; exit 1; }

# check NAME LAUNCHER...: sweeps with four ranks, and merges
check() {
  local name=$1
  shift
  if ! command -v "$1" >/dev/null; then echo "$name: skipped: no $1"; return; fi
  timeout 60 "$@" "$moeline" sweep "$study" -o "$out/$name.sqlite" >"$out/$name.out" 2>"$out/log" ||
    fail "$name: the sweep failed"
  [ ! -s "$out/$name.out" ] || fail "$name: ranks print tables"
  [ "$(grep -c "10 of 40 points; --merge" "$out/log")" = 4 ] || fail "$name: shares are not four times ten points"
  "$moeline" sweep "$study" --merge "$out/$name".*-of-4.sqlite -o "$out/$name.sqlite" --format csv \
    >"$out/$name.csv" 2>"$out/log" || fail "$name: the merge failed"
  cmp "$out/$name.csv" "$out/whole.csv" || fail "$name: the table is another"
  echo "$name: four ranks make the table of one process"
}
check openmpi mpirun.openmpi -n 4 --oversubscribe
check mpich mpirun.mpich -n 4
