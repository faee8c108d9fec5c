#!/usr/bin/env bash
# Builds the fuzzing programs and runs each, two at a time, for so many seconds (20), or on so many inputs from a fixed
# seed: few for continuous integration, which is to find what a change broke; whoever changes a reader gives it minutes.
# One input that crashes, hangs or takes more than 2 GB fails, and is left in build/asan/fuzz/found.
#   tests/fuzz/run.sh [SECONDS|INPUTSx [NAME...]]
set -euo pipefail
cd "$(dirname "$0")/../.."
case "${1:-20}" in
  *x) limit=("-runs=${1%x}" -seed=1) ;;
  *) limit=("-max_total_time=${1:-20}") ;;
esac
shift $(($# > 0 ? 1 : 0))
build=build/asan
fuzz=$build/fuzz
started=$SECONDS
cmake --preset asan >/dev/null
cmake --build $build --target fuzzers
echo "fuzzers built in $((SECONDS - started)) s"
mkdir -p $fuzz/found
TMPDIR=$(mktemp -d -p /dev/shm)  # in memory: each input is a few files
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# Files of ours that are inputs as they are, and pages whose words are keys.
seeds_of() {
  case "$1" in
    calibration) echo calib/data/*.csv calib/schema.md calib/fit/bench_table.cpp ;;
    facts) echo tests/published/*.yaml experiments/studies/served_b200/rows.yaml tests/published/README.md ;;
    kernel_map) echo model/measured/README.md ;;
    model) echo model/zoo/*.yaml model/architecture/config_keys.cpp model/architecture/model_families.cpp ;;
    op) echo model/hardware/parse_op.cpp ;;
    overlap_plan) echo schedules/*.yaml schedules/README.md ;;
    plan) echo experiments/studies/*/plan.yaml experiments/studies/train_plans/*.yaml experiments/plan/README.md ;;
    profile) echo hwprofiles/h20.yaml hwprofiles/b300.yaml hwprofiles/README.md ;;
    row_kinds) echo calib/tables/serving_stacks.yaml calib/tables/README.md ;;
    scenario) echo experiments/studies/*/*scenario*.yaml schedules/scenario/README.md experiments/serve/README.md ;;
    study) echo experiments/studies/*/study.yaml experiments/sweep/README.md ;;
  esac
}

# Words of pages and inputs; of a reader that has a dictionary of its own, that.
write_dictionary() {
  local name=$1
  if [ -e "tests/fuzz/$name.dict" ]; then cp "tests/fuzz/$name.dict" "$fuzz/$name.dict"; return; fi
  # shellcheck disable=SC2046
  cat $(seeds_of "$name") tests/fuzz/corpus/"$name"/* | grep -oaE '[A-Za-z_][A-Za-z0-9_.-]{2,30}|[0-9]{5,}' | sort -u |
    sed 's/.*/"&"/' >"$fuzz/$name.dict"
}

run() {
  local name=$1 inputs=("tests/fuzz/corpus/$1") file
  mkdir -p "$fuzz/corpus/$name" "$fuzz/seeds/$name"
  for file in $(seeds_of "$name"); do
    case "$file" in *.yaml | *.csv) cp "$file" "$fuzz/seeds/$name/$(tr / _ <<<"$file")" ;; esac
  done
  inputs+=("$fuzz/seeds/$name")
  write_dictionary "$name"
  if ! "$build/tests/fuzz/${name}_fuzz" "${limit[@]}" -timeout=5 -rss_limit_mb=2000 -malloc_limit_mb=2000 \
    -max_len=16384 -dict="$fuzz/$name.dict" -artifact_prefix="$fuzz/found/$name-" -print_final_stats=1 \
    "$fuzz/corpus/$name" "${inputs[@]}" >"$fuzz/$name.log" 2>&1; then
    echo "$name: a find in $fuzz/found; the end of $fuzz/$name.log:"
    tail -n 30 "$fuzz/$name.log"
    return 1
  fi
  echo "$name: $(grep -c . "$fuzz/$name.dict") words, $(sed -n 's/stat::number_of_executed_units: *//p' "$fuzz/$name.log") inputs"
}

failed=0
names=("$@")
if [ ${#names[@]} = 0 ]; then
  for folder in tests/fuzz/corpus/*/; do names+=("$(basename "$folder")"); done
fi
for ((i = 0; i < ${#names[@]}; i += 2)); do
  jobs=()
  for name in "${names[@]:i:2}"; do
    run "$name" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
done
exit $failed
