#!/usr/bin/env bash
# Rewrites the expected tables of the studies and plans in experiments/studies/: expected.csv beside study.yaml and plan.yaml,
# expected_NAME.csv beside NAME.yaml; and of the folders that have a script for theirs, those that need configs where
# they are at hand. What changes is to be looked at, and the numbers in the READMEs with it.
#   tests/update_studies.sh [STUDY...]   all studies and plans by default
set -euo pipefail
moeline=$(realpath "${MOELINE:-$(dirname "$0")/../build/release/moeline}")
named=$#
if [ "$named" -eq 0 ]; then
  mapfile -t studies < <(grep -l '^axes:' "$(dirname "$0")"/../experiments/studies/*/*.yaml)
  set -- "${studies[@]}"
  for plan in $(grep -l '^limits:' "$(dirname "$0")"/../experiments/studies/*/*.yaml); do
    name=$(basename "$plan" .yaml)
    expected=$(dirname "$plan")/expected_$name.csv
    [ "$name" = plan ] && expected=$(dirname "$plan")/expected.csv
    "$moeline" plan "$plan" --no-sensitivity --format csv >"$plan.csv" 2>/dev/null
    mv "$plan.csv" "$expected"
  done
  for script in "$(dirname "$0")"/../experiments/studies/{mechanisms_h800/switch_off,pipelines_deepseek_v3_2048_h800/side_by_side}.sh; do
    MOELINE=$moeline "$script" >"$script.csv"
    mv "$script.csv" "$(dirname "$script")/expected.csv"
  done
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for study in "$@"; do
  name=$(basename "$study" .yaml)
  expected=$(dirname "$study")/expected_$name.csv
  [ "$name" = study ] && expected=$(dirname "$study")/expected.csv
  "$moeline" sweep "$study" -o "$scratch/table.sqlite" --format csv --no-progress >"$scratch/table.csv"
  cp "$scratch/table.csv" "$expected"
  rm "$scratch/table.sqlite"
done
if [ "$named" -eq 0 ]; then
  for folder in sparse_or_full_attention state_or_cache first_or_second_deepep machine_what_if; do
    python3 "$(dirname "$0")/../experiments/studies/$folder/findings.py" "$moeline" >"$scratch/expected.txt"
    cp "$scratch/expected.txt" "$(dirname "$0")/../experiments/studies/$folder/"
  done
  left_out=$(dirname "$0")/../experiments/studies/machine_left_out
  python3 "$left_out/left_out.py" "$moeline" "$(dirname "$0")/../hwprofiles/left_out.csv" >"$scratch/expected.txt"
  cp "$scratch/expected.txt" "$left_out/"
  "$moeline" validate "$(dirname "$0")/../experiments/studies/decisions/pairs.yaml" >"$scratch/expected.txt"
  cp "$scratch/expected.txt" "$(dirname "$0")/../experiments/studies/decisions/"
  for machine in h100 h200 b200 gb200-nvl72; do
    MOELINE=$moeline "$(dirname "$0")/../experiments/studies/ten_questions/ask.sh" $machine >"$scratch/expected.txt"
    cp "$scratch/expected.txt" "$(dirname "$0")/../experiments/studies/ten_questions/expected_$machine.txt"
  done
  paper=$(dirname "$0")/../experiments/studies/single_or_two_batch
  python3 "$paper/on_paper.py" "$moeline" >"$scratch/expected.csv"
  cp "$scratch/expected.csv" "$paper/expected_on_paper.csv"
  best=$(dirname "$0")/../experiments/studies/which_overlap_wins
  python3 "$best/best_plans.py" "$moeline" >"$scratch/expected.csv"
  cp "$scratch/expected.csv" "$best/expected_best_plans.csv"
  configs=${MOELINE_DATA:-$(dirname "$0")/../../shared/data}/configs
  if [ -d "$configs" ]; then
    python3 "$(dirname "$0")/../experiments/studies/every_model/table.py" "$configs" "$moeline" >"$scratch/expected.txt"
    cp "$scratch/expected.txt" "$(dirname "$0")/../experiments/studies/every_model/"
    python3 "$(dirname "$0")/../experiments/studies/learn_from_a_trace/findings.py" "$moeline" >"$scratch/expected.txt"
    cp "$scratch/expected.txt" "$(dirname "$0")/../experiments/studies/learn_from_a_trace/"
  fi
fi
