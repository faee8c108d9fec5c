#!/usr/bin/env bash
# The best layout of each model, machine and number of GPUs, as CSV: plan.yaml beside this file, with everything searched.
# Half an hour on two cores. Arguments: numbers of GPUs (256 and 2048 by default).
set -euo pipefail
here=$(realpath "$(dirname "$0")")
moeline=${MOELINE:-$here/../../../build/release/moeline}
[ $# -gt 0 ] || set -- 256 2048
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=1
for gpus in "$@"; do
  for model in mixtral-8x7b qwen3-235b-a22b deepseek-v3; do
    for machine in h100 h200 b200; do
      sed -e "s/^model: .*/model: $model/" -e "s/^hardware: .*/hardware: {$machine: }/" \
        -e "s/gpus: [0-9]*/gpus: $gpus/" -e "s/global_batch_size: [0-9]*/global_batch_size: $((4 * gpus))/" \
        -e "/^search:/d" "$here/plan.yaml" >"$work/plan.yaml"
      "$moeline" plan "$work/plan.yaml" --no-sensitivity --format csv 2>/dev/null >"$work/plan.csv" || true
      [ $first = 1 ] && echo "gpus,model,$(head -n 1 "$work/plan.csv")"
      first=0
      echo "$gpus,$model,$(sed -n 2p "$work/plan.csv")"
    done
  done
done
