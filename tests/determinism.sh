#!/usr/bin/env bash
# Equal input gives equal bytes: twice with one binary, and with one that another compiler built with other options (the
# preset asan is clang's).
#   tests/determinism.sh MOELINE OTHER
set -euo pipefail
[ $# -eq 2 ] || { sed -n '4s/^# //p' "$0" >&2; exit 2; }
moeline=$(realpath "$1")
other=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$(dirname "$0")/.."
scenario=experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml
step=experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml  # with few micro-batches: one build is slow

# The result and the trace of one run, without the one line that says how long the program took.
record() {
  mkdir -p "$scratch/$2"
  "$1" simulate "$scenario" --format json --trace "$scratch/$2/trace.json" >"$scratch/$2/all.json" \
    2>"$scratch/$2/messages" || { cat "$scratch/$2/messages" >&2; exit 1; }
  grep -q '"simulate_ms"' "$scratch/$2/all.json" || { echo "$2: no simulate_ms in the result" >&2; exit 1; }
  grep -v '"simulate_ms"' "$scratch/$2/all.json" >"$scratch/$2/result.json"
  "$1" simulate "$step" --set workload.global_batch_size=4096 --format json 2>>"$scratch/$2/messages" |
    grep -v '"simulate_ms"' >"$scratch/$2/step.json"
  [ -s "$scratch/$2/trace.json" ] || { echo "$2: the trace is empty" >&2; exit 1; }
}

same() {
  local file
  for file in result.json trace.json step.json messages; do
    if ! cmp -s "$scratch/$1/$file" "$scratch/$2/$file"; then
      echo "$file differs between the $1 run and the $2 run; first difference:" >&2
      { diff "$scratch/$1/$file" "$scratch/$2/$file" || true; } | awk 'NR <= 4' >&2
      exit 1
    fi
  done
}

record "$moeline" first
record "$moeline" second
record "$other" other-compiler
same first second
same first other-compiler
echo "determinism: ok"
