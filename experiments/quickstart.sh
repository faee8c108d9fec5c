#!/usr/bin/env bash
# From a fresh Debian 12 machine to predicted timelines of DeepSeek-V3 on H800: installs what is missing, builds, and
# simulates training (one overlapped chunk), prefill, and decode without and with a drafted token, each overlapped and
# sequential, and a whole step of training. Where the measured trace of the training chunk is present, compares with it.
set -euo pipefail
repository=$(realpath "$(dirname "$0")/..")
data=$(realpath -m "${MOELINE_DATA:-$repository/../shared/data}")
cd "$repository"
train=experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml
prefill=experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml
step=experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml
decode=experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml
out=out/quickstart
measured=$data/traces/deepseek_v3_train_h800_ep64.json.gz

experiments/install.sh
cmake --preset release >/dev/null
cmake --build --preset release --target moeline

# predict NAME SCENARIO [--set key=value]...: the table compares with the sequential run, whose trace lies beside it
predict() {
  local name=$1
  shift
  echo
  build/release/moeline simulate "$@" -o "$out/$name" --force  # also over what an earlier version wrote
  build/release/moeline simulate "$@" --set schedule=sequential -o "$out/${name}_sequential" --force >/dev/null 2>&1
}
predict train "$train"
predict prefill "$prefill"
predict decode "$decode"
predict decode_mtp "$decode" --set workload.query_len=2
echo
build/release/moeline simulate "$step" -o "$out/train_step" --force

echo
echo "traces:  $out/*/traces/rank_0.json   (open them in https://ui.perfetto.dev or chrome://tracing)"
echo "numbers: $out/*/metrics.json"
echo
if [ -e "$measured" ]; then
  echo "Training against the measured chunk: fitted on its layers 0 and 1, layers 2 and 3 are predicted."
  build/release/moeline compare "$train" "$measured" --layers 2,3 --trace "$out/predicted_and_measured.json" --force
  echo
  echo "Both in one trace: $out/predicted_and_measured.json"
  echo "What limits the measured run, and what if: build/release/moeline analyze|replay $measured"
else
  echo "The measured trace is not here. To compare: get train.json from deepseek-ai/profile-data, gzip it as"
  echo "  $measured  (or set MOELINE_DATA), and run this again."
fi
