#!/usr/bin/env bash
# An installed moeline: other programs link it, and it runs without its source tree.
#   tests/library/run.sh BUILD_DIR
set -euo pipefail
[ $# -eq 1 ] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
build=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset MOELINE_HOME MOELINE_ECHARTS
prefix=$scratch/prefix

cmake --install "$build" --prefix "$prefix" >"$scratch/log"
# As the build was made: sanitized libraries link into sanitized programs only.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
as_built=(-G "$(cached CMAKE_GENERATOR)")
for option in CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS CMAKE_BUILD_TYPE; do as_built+=("-D$option=$(cached $option)"); done
cmake -S "$here" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" "${as_built[@]}" >>"$scratch/log"
cmake --build "$scratch/build" >>"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }

cd "$scratch"
build/engine_alone
scenario=$prefix/share/moeline/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml
step_ms=$(MOELINE_HOME=$prefix/share/moeline build/one_scenario "$scenario")
echo "the library says $step_ms ms"

# Moved, and with nothing in it that names where it was built; sanitizers alone put source files' names into a program.
mv "$prefix" "$scratch/elsewhere"
scenario=$scratch/elsewhere/share/moeline/experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml
moeline=$scratch/elsewhere/bin/moeline
if ! cached CMAKE_CXX_FLAGS | grep -q -- -fsanitize && grep -qaF "$(realpath "$here/../..")/" "$moeline"; then
  echo "the program holds the path of its source tree" >&2
  exit 1
fi
"$moeline" simulate "$scenario" --format json >result.json 2>messages || { cat messages >&2; exit 1; }
grep -F '"step_ms": '"$step_ms" result.json || { echo "the program says otherwise:" >&2; grep step_ms result.json >&2; exit 1; }
"$moeline" list hardware >/dev/null
"$moeline" validate "$scratch/elsewhere/share/moeline/tests/published/pipelines.yaml" >/dev/null
echo "the installed program says the same, and runs where it was moved to"
