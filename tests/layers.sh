#!/usr/bin/env bash
# Includes go downward only. Each line: a folder, then the folders it may include from (its own is understood), or
# `nothing`: it builds without the rest, and includes its own files by their bare names.
set -euo pipefail
cd "$(dirname "$0")/.."
rules='
model/base
model/graph      base
model/engine     base graph
model/timeline   base graph engine
model/measured   base graph engine timeline
model/architecture base graph
model/routing    base graph architecture
model/moe        base graph architecture routing
model/hardware   base graph architecture routing moe
schedules        base graph architecture routing moe hardware
calib/fit        base graph architecture routing moe hardware
calib/bench      nothing
experiments/page  base
experiments/run   base graph engine timeline architecture routing moe hardware schedules
experiments/sweep run base graph engine timeline architecture routing moe hardware schedules
experiments/plan  run base graph engine timeline architecture routing moe hardware schedules
experiments/cli   run sweep plan page base graph engine timeline measured architecture routing moe hardware schedules calib
'
failed=0
checked=0
while read -r folder allowed; do
  [ -n "$folder" ] || continue
  own=${folder#model/}
  own=${own#experiments/}
  own=${own%%/*}
  [ "$allowed" = nothing ] && own=
  while IFS=: read -r file line include; do
    checked=$((checked + 1))
    target=$(sed -E 's/.*"(experiments\/)?([^/"]+)\/.*/\2/' <<<"$include")
    [ "$allowed" = nothing ] && [[ $include != */* ]] && target=nothing
    case " $own $allowed " in
      *" $target "*) ;;
      *)
        echo "$file:$line: $folder must not include from $target: $include" >&2
        failed=1
        ;;
    esac
  done < <(grep -rnE '^ *#include "' --include='*.'{hpp,cpp,cu,cuh} "$folder" || true)
done <<<"$rules"
[ "$checked" -gt 50 ] || { echo "only $checked includes found: is this the source tree?" >&2; exit 1; }
[ "$failed" -eq 0 ] && echo "layers: $checked includes, all downward"
exit "$failed"
