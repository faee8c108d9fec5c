#!/usr/bin/env bash
# Rewrites the expected tables of the studies in experiments/: expected.csv beside study.yaml, expected_NAME.csv beside
# NAME.yaml; and of the plans, beside plan.yaml. What changes is to be looked at, and the numbers in the READMEs with it.
#   tests/update_studies.sh [STUDY...]   all studies and plans by default
set -euo pipefail
moeline=$(realpath "${MOELINE:-$(dirname "$0")/../build/release/moeline}")
if [ $# -eq 0 ]; then
  mapfile -t studies < <(grep -l '^axes:' "$(dirname "$0")"/../experiments/*/*.yaml)
  set -- "${studies[@]}"
  for plan in "$(dirname "$0")"/../experiments/*/plan.yaml; do
    "$moeline" plan "$plan" --no-sensitivity --format csv >"$plan.csv" 2>/dev/null
    mv "$plan.csv" "$(dirname "$plan")/expected.csv"
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
