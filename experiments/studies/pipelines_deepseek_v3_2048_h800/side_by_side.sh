#!/usr/bin/env bash
# One row per pipeline schedule of the scenario beside this file, as CSV; further arguments go to `moeline simulate`.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
moeline=${MOELINE:-$here/../../../build/release/moeline}
metrics=(step_ms bubble_ms exposed_comm_us memory_gib mfu forward_ms backward_ms weight_ms overlapped_ms optimizer_ms
         gpu_hours_per_trillion_tokens)

# value KEY: the first number of that name, which is the metric's
value() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" <<<"$result" | head -n 1; }

(IFS=,; echo "schedule,${metrics[*]}")
# row NAME [--set key=value]...
row() {
  local name=$1
  shift
  result=$("$moeline" simulate "$here/scenario.yaml" "$@" --format json 2>/dev/null)
  local text=$name
  for metric in "${metrics[@]}"; do text+=,$(value "$metric"); done
  echo "$text"
}
for schedule in gpipe 1f1b interleaved-1f1b zb1p zb-h2 zbv v-half v-min dualpipe dualpipev; do
  chunks=()
  [ "$schedule" = interleaved-1f1b ] && chunks=(--set parallelism.virtual_pp=2)
  row "$schedule" --set schedule="$schedule" "${chunks[@]}" "$@"
done
row "1f1b combined" --set schedule=1f1b --set overlap=combined "$@"
row "interleaved-1f1b combined" --set schedule=interleaved-1f1b --set parallelism.virtual_pp=2 --set overlap=combined "$@"
