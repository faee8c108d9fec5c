#!/usr/bin/env bash
# The Debian package: what is in it runs by itself, every command, wherever it lies.
#   tests/library/package.sh BUILD_DIR
set -euo pipefail
[ $# -eq 1 ] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
build=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset MOELINE_HOME MOELINE_ECHARTS MOELINE_DATA

(cd "$build" && cpack -B "$scratch/package") >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
dpkg-deb -x "$scratch"/package/*.deb "$scratch/root"
PATH=$scratch/root/usr/bin:$PATH
cd "$scratch"
questions=$scratch/root/usr/share/moeline/experiments/studies
decode=$questions/decode_deepseek_v3_h800_ep128/scenario.yaml

runs() {
  moeline "$@" >result 2>messages || { echo "moeline $*: $(head -n 1 messages)" >&2; exit 1; }
}
[ "$(command -v moeline)" = "$scratch/root/usr/bin/moeline" ]
moeline --version | grep -E '^moeline [0-9.]+( \([0-9a-f]+, [0-9-]+(, with changes)?\))?$'
runs init decode qwen3-30b-a3b h200 -o begun.yaml
runs simulate begun.yaml
runs simulate "$decode" --trace trace.json --html page.html --svg picture.svg
runs simulate "$questions/serve_requests_h200/scenario.yaml"
runs explain "$decode"
runs search "$decode" --over sms
runs compare "$decode" trace.json
runs analyze trace.json
runs replay trace.json
runs validate "$questions/../../tests/published/pipelines.yaml"
runs calibrate "$questions/../../calib/data/deepgemm_published.csv" -o profile.yaml
runs list hardware
runs price h800 gemm:m=128,n=7168,k=2048
runs model deepseek-v3
runs balance --power-law 1 --experts 256 --gpus 32 --nodes 4 --groups 8 --replicas 288
runs sweep "$questions/mtp_by_batch_h800/study.yaml" -o table.sqlite --no-progress
runs plan "$questions/serve_deepseek_v3_h800/plan.yaml" --no-sensitivity
[ "$(ls "$scratch"/root/usr/share/man/man1/moeline*.1* | wc -l)" -ge 15 ]
[ -e "$scratch/root/usr/share/bash-completion/completions/moeline" ]
python=$scratch/root/usr/lib/python3/dist-packages
if [ -d "$python/moeline" ]; then
  PYTHONPATH=$python /usr/bin/python3 -c "
import moeline
assert moeline.simulate('$decode')['metrics']['tpot_ms'] > 0
assert moeline.__file__.startswith('$python')"
fi
echo "every command of the package runs without the source tree"
