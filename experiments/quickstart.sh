#!/usr/bin/env bash
# From a fresh Debian 12 machine to a predicted timeline: installs what is missing, builds, simulates the overlapped
# forward and backward chunk of DeepSeek-V3's training, and, where the measured trace of it is present, compares.
set -euo pipefail
repository=$(realpath "$(dirname "$0")/..")
data=$(realpath -m "${MOELINE_DATA:-$repository/../shared/data}")
cd "$repository"
scenario=experiments/train_chunk_deepseek_v3_h800/scenario.yaml
out=out/quickstart
measured=$data/traces/deepseek_v3_train_h800_ep64.json.gz

experiments/install.sh
cmake --preset release >/dev/null
cmake --build --preset release --target moeline

moeline=build/release/moeline
"$moeline" simulate "$scenario" -o "$out"
echo
echo "trace:   $out/traces/rank_0.json   (open it in https://ui.perfetto.dev or chrome://tracing)"
echo "numbers: $out/metrics.json"
echo
if [ -e "$measured" ]; then
  echo "Against the measured chunk: constants were fitted on its layers 0 and 1, layers 2 and 3 are predicted."
  "$moeline" compare "$scenario" "$measured" --layers 2,3
else
  echo "The measured trace is not here. To compare: get train.json from deepseek-ai/profile-data, gzip it as"
  echo "  $measured  (or set MOELINE_DATA), and run this again."
fi
