#!/usr/bin/env bash
# One row per pipeline schedule of the scenario beside this file, as CSV; further arguments go to `moeline simulate`.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
moeline=${MOELINE:-$here/../../build/release/moeline}
metrics=(step_ms bubble_ms exposed_comm_us memory_gib mfu forward_ms backward_ms weight_ms overlapped_ms optimizer_ms
         gpu_hours_per_trillion_tokens)

# value KEY: the first number of that name, which is the metric's
value() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" <<<"$result" | head -n 1; }

(IFS=,; echo "schedule,${metrics[*]}")
for schedule in gpipe 1f1b interleaved-1f1b zb1p dualpipe dualpipev; do
  chunks=()
  [ "$schedule" = interleaved-1f1b ] && chunks=(--set parallelism.virtual_pp=2)
  result=$("$moeline" simulate "$here/scenario.yaml" --set schedule="$schedule" "${chunks[@]}" "$@" --format json 2>/dev/null)
  row=$schedule
  for metric in "${metrics[@]}"; do row+=,$(value "$metric"); done
  echo "$row"
done
