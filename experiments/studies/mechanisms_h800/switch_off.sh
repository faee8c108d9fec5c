#!/usr/bin/env bash
# What each mechanism between kernels is worth, in the scenarios of DeepSeek-V3's profiles, its training step, and inference
# by kernels that were timed on rested GPUs. Rows switch them on one after the other, in the order in which they were built,
# and then all but one. CSV: us of each class per MoE layer, in training of one forward and one backward layer (of whole
# steps none), and the step in ms.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
moeline=${MOELINE:-$here/../../../build/release/moeline}
classes=(attention gemm grouped_gemm memory small dispatch combine barrier)

# value KEY: the first number of that name
value() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" <<<"$result" | head -n 1; }
# busy CLASS: us per layer in which a kernel of it runs; nothing where there is none
busy() { sed -n "/\"class\": \"$1\"/{n;s/[^0-9]*\([0-9.]*\).*/\1/p}" <<<"$result"; }

# row SCENARIO LABEL SETTING...
row() {
  local scenario=$1 label=$2 settings=()
  shift 2
  for setting in "$@"; do settings+=(--set "$setting"); done
  result=$("$moeline" simulate "$here/../$scenario/scenario.yaml" "${settings[@]}" --format json 2>/dev/null)
  local kernels line
  kernels=$(sed -n 's/^ *"kernels": "\(.*\)".*/\1/p' <<<"$result" | head -n 1)
  line="$scenario,$kernels,$label,$(value step_ms),$(value exposed_comm_us)"
  for class in "${classes[@]}"; do line+=,$(busy "$class"); done
  echo "$line"
}

# Those that a scenario may have: on one after the other, then all but one.
rows() {
  local scenario=$1 switch off=("${switches[@]#* }")
  shift
  row "$scenario" none "$@" "${off[@]}"
  for switch in "${switches[@]}"; do
    off=("${off[@]:1}")
    row "$scenario" "and ${switch%% *}" "$@" "${off[@]}"
  done
  for switch in "${switches[@]}"; do row "$scenario" "all but ${switch%% *}" "$@" "${switch#* }"; done
}

(IFS=,; echo "scenario,kernels,on,step_ms,exposed_comm_us,${classes[*]}")
switches=("neighbours comm.neighbours=none" "scatter routing.distribution=exact" "gaps launch=none"
          "stragglers speed_spread=0")
for scenario in decode_deepseek_v3_h800_ep128 prefill_deepseek_v3_h800_ep32 train_deepseek_v3_2048_h800; do
  rows "$scenario"
done
switches+=("clocks clock=burst")
for scenario in decode_deepseek_v3_h800_ep128 prefill_deepseek_v3_h800_ep32; do rows "$scenario" kernels=open-2025-late; done
switches=("neighbours comm.neighbours=none" "gaps launch=none" "stragglers speed_spread=0")
rows train_chunk_deepseek_v3_h800 samples=1 ranks=folded
