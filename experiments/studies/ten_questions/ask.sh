#!/usr/bin/env bash
# Ten questions that users ask, on four machines: who wins where. Each is one command.
#   ask.sh [MACHINE...]      MOELINE: the program, by default that of build/release
set -uo pipefail
cd "$(dirname "$0")"
moeline=${MOELINE:-../../../build/release/moeline}
[ $# -gt 0 ] || set -- h100 h200 b200 gb200-nvl72
for machine in "$@"; do
  echo "$machine"
  ask() {  # question, scenario, arguments of decide
    local question=$1 scenario=$2
    shift 2
    echo "  $question"
    "$moeline" decide "$scenario" --set "hardware=$machine" "$@" --format json 2>&1 | python3 stretches.py
  }
  ask "experts cut or spread, attention shared or not, by concurrency" decode.yaml --along workload.concurrency=8..1024 \
    --option "parallelism={tp: 4, dp: 2, ep: 8}" --option "parallelism={ep: 8}" --option "parallelism={tp: 4, dp: 2, ep: 1, moe_tp: 8}"
  ask "attention data parallel or tensor parallel, by prompt length" serve.yaml --along workload.input_len=256..16384 \
    --option "parallelism={tp: 8}" --option "parallelism={ep: 8}"
  ask "EP degree, by batch" decode_wide.yaml --along workload.batch_size=8..256 \
    --option "parallelism={ep: 16}" --option "parallelism={ep: 32}" --option "parallelism={ep: 64}"
  ask "two micro-batches or one, by batch" decode_wide.yaml --along workload.batch_size=8..256 \
    --option schedule=sequential --option schedule=decode-two-batch
  ask "drafts, by batch and acceptance" decode_wide.yaml --along workload.batch_size=4..256 --along "workload.mtp_acceptance=[0.6, 0.8, 0.9]" \
    --option workload.query_len=1 --option workload.query_len=2 --option workload.query_len=3
  ask "FP8 cache, by length" decode.yaml --along workload.kv_len=1024..131072 \
    --option precision.kv_cache=bf16 --option precision.kv_cache=fp8
  ask "SMs for communication, by EP" prefill_wide.yaml --along "parallelism.ep=[16, 32, 64, 128]" \
    --option comm.num_sms=8 --option comm.num_sms=16 --option comm.num_sms=24 --option comm.num_sms=32
  ask "micro batch 1 or 4, by length of sequences" train.yaml --along workload.seq_len=1024..16384 \
    --option workload.micro_batch_size=1 --option workload.micro_batch_size=4
  ask "stages or experts spread wider, by batch" train_large.yaml --along workload.global_batch_size=256..4096 \
    --option "parallelism={pp: 8, ep: 8, dp: 8}" --option "parallelism={pp: 1, ep: 64, dp: 64}"
  ask "recomputation or a smaller micro batch, by length of sequences" train.yaml --along workload.seq_len=1024..16384 \
    --option "workload.micro_batch_size=2 training.recompute=full" --option "workload.micro_batch_size=1 training.recompute=none"
done
