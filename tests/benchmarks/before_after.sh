#!/usr/bin/env bash
# Prints what a user waits for, before and after a change: tests/benchmarks/before_after.sh BEFORE AFTER [ROUNDS]
# BEFORE and AFTER are build folders, or folders with moeline and engine_benchmark of one each. Both programs take turns
# on one core, so that whatever else the machine does slows both alike. A row is the median over the rounds (default 5)
# of processor time; of the engine, tasks per second. MOELINE_HOME names the data, by default this tree's.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
before=$(cd "$1" && pwd) after=$(cd "$2" && pwd) rounds=${3:-5}
export MOELINE_HOME=${MOELINE_HOME:-$root} LC_ALL=C TIMEFORMAT='%U %S'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
core=$(taskset -cp $$ | sed 's/.*[:,-] *//')

cat >"$work/study.yaml" <<END
schema: 1
scenario: $MOELINE_HOME/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml
axes:
  parallelism.ep: [32, 64, 128, 256]
  workload.batch_size: {from: 8, to: 400, step: 8}
  workload.kv_len: {from: 1024, to: 13568, step: 256}
metrics: [tpot_ms, exposed_comm_us, memory_gib]
END

# Processor time of a command, run so many times, ms for each.
cpu_ms() {
  local times=$1
  shift
  { time for ((run = 0; run < times; ++run)); do taskset -c "$core" "$@" >/dev/null 2>&1; done; } 2>&1 |
    awk -v times="$times" '{ print 1e3 * ($1 + $2) / times }'
}

# A column of a benchmark's CSV: 4 is processor time, 7 items per second, 13 of Simulate the time over its floor's.
benchmark() {
  taskset -c "$core" "$1/engine_benchmark" --benchmark_filter="^$2\$" --benchmark_format=csv 2>/dev/null |
    awk -F, -v column="$3" 'END { print $column }'
}

sweep() {
  rm -f "$work"/table.sqlite*
  cpu_ms 1 "$1/moeline" sweep "$work/study.yaml" -o "$work/table.sqlite" --workers 1 --no-progress
}

speed() {
  local folder=$1
  case $2 in
    point) benchmark "$folder" PredictDecodeFolded 4 ;;
    engine_1) benchmark "$folder" Simulate/ranks:1 7 ;;
    engine_64) benchmark "$folder" Simulate/ranks:64 7 ;;
    floor_1) benchmark "$folder" Simulate/ranks:1 13 ;;
    floor_64) benchmark "$folder" Simulate/ranks:64 13 ;;
    sweep) sweep "$folder" ;;
    version) cpu_ms 20 "$folder/moeline" --version ;;
    list) cpu_ms 20 "$folder/moeline" list models ;;
    model) cpu_ms 20 "$folder/moeline" model deepseek-v3 ;;
    samples)
      cpu_ms 1 "$folder/moeline" simulate --samples 100 \
        "$MOELINE_HOME/experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml"
      ;;
  esac
}

median() { sort -g "$1" | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

# Name, title, and by what to divide.
row() {
  local old new
  for ((round = 0; round < rounds; ++round)); do
    speed "$before" "$1" >>"$work/$1.before"
    speed "$after" "$1" >>"$work/$1.after"
  done
  old=$(median "$work/$1.before") new=$(median "$work/$1.after")
  awk -v title="$2" -v scale="$3" -v old="$old" -v new="$new" \
    'BEGIN { printf "| %-44s | %8.3f | %8.3f | %5.2f |\n", title, old / scale, new / scale, new / old }'
}

printf '| %-44s | %8s | %8s | %5s |\n|%s|---------:|---------:|------:|\n' what before after ratio "$(printf -- '-%.0s' {1..46})"
row point "a point of decode, folded, in process, us" 1
row engine_1 "engine, 1 rank, million tasks a second" 1e6
row engine_64 "engine, 64 ranks, million tasks a second" 1e6
row floor_1 "engine over a topological pass, 1 rank" 1
row floor_64 "engine over a topological pass, 64 ranks" 1
row sweep "a sweep of 10 000 points, s" 1e3
row version "moeline --version, ms" 1
row list "moeline list models, ms" 1
row model "moeline model deepseek-v3, ms" 1
row samples "training chunk, 64 ranks, 100 samples, s" 1e3
