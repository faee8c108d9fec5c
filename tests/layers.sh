#!/usr/bin/env bash
# Includes go downward only, folder by folder, and no two headers define one type. Each line: a folder, then the folders
# it may include from (its own is understood), or `nothing`: it builds without the rest, and includes its own files by
# their bare names. A folder may include only from folders that stand above it in this list, so that no cycle can be
# written down.
set -euo pipefail
cd "$(dirname "$0")/.."
model='base graph engine trace timeline architecture routing moe curves hardware'
schedules='schedules/scenario schedules/lowering schedules schedules/pipeline'
rules="
model/base         base
model/graph        base
model/engine       base graph
model/trace        base graph
model/timeline     base graph engine trace
model/measured     base graph engine trace timeline
model/architecture base graph
model/routing      base graph architecture
model/moe          base graph architecture routing
model/curves       base graph architecture routing moe
model/hardware     base graph architecture routing moe curves
schedules/scenario base graph architecture routing moe curves hardware
schedules/lowering base graph architecture routing moe curves hardware schedules/scenario
schedules          base graph architecture routing moe curves hardware schedules/scenario schedules/lowering
schedules/pipeline base graph architecture routing moe curves hardware schedules/scenario schedules/lowering
calib/fit          base graph trace architecture routing moe curves hardware
calib/bench        nothing
calib/bench/attention nothing
experiments/report base
experiments/memory $model $schedules
experiments/run    experiments/memory $model $schedules
experiments/page   experiments/run base
experiments/explain experiments/run measured $model $schedules
experiments/timeline_page experiments/page experiments/explain experiments/run measured $model $schedules
experiments/serve  experiments/memory experiments/run $model $schedules
experiments/init   experiments/run $model $schedules
experiments/sweep  experiments/run $model $schedules
experiments/decide experiments/sweep experiments/explain experiments/serve experiments/run measured $model $schedules
experiments/validate experiments/decide experiments/serve experiments/run calib/fit $model $schedules
experiments/learn  experiments/run measured $model $schedules
experiments/plan   experiments/memory experiments/serve experiments/run $model $schedules
experiments/plan_training experiments/memory experiments/plan experiments/run $model $schedules
experiments/search experiments/run $model $schedules
experiments/search_pipeline experiments/memory experiments/run $model $schedules
experiments/cli/output experiments/decide experiments/memory experiments/report experiments/learn experiments/serve experiments/search experiments/search_pipeline experiments/timeline_page experiments/explain experiments/run experiments/validate experiments/sweep experiments/plan experiments/plan_training experiments/page calib/fit measured $model $schedules
experiments/cli    experiments/decide experiments/report experiments/init experiments/learn experiments/serve experiments/search experiments/search_pipeline experiments/cli/output experiments/timeline_page experiments/explain experiments/run experiments/validate experiments/sweep experiments/plan experiments/plan_training experiments/page calib/fit measured $model $schedules
experiments/cli/allocator nothing
experiments/packaging/describe experiments/cli base
experiments/python experiments/cli/output experiments/cli experiments/run $model $schedules
"
failed=0
checked=0
above=' nothing '
while read -r folder allowed; do
  [ -n "$folder" ] || continue
  own=${folder#model/}
  for other in $allowed; do
    case "$above$own " in
      *" $other "*) ;;
      *) echo "$0: $folder may not be allowed $other, which does not stand above it" >&2; failed=1 ;;
    esac
  done
  above+="$own "
  while IFS=: read -r file line include; do
    checked=$((checked + 1))
    target=${include#*\"}
    target=${target%\"*}
    case "$target" in */*) target=${target%/*} ;; *) target= ;; esac
    [ "$allowed" = nothing ] && [ -z "$target" ] && target=nothing
    case " $own $allowed " in
      *" $target "*) ;;
      *)
        echo "$file:$line: $folder must not include from $target: $include" >&2
        failed=1
        ;;
    esac
  done < <(grep -nE '^ *#include "' "$folder"/*.hpp "$folder"/*.cpp "$folder"/*.cu "$folder"/*.cuh 2>/dev/null || true)
done <<<"$rules"
# No folder of code is left out of the list.
while read -r folder; do
  case "$above" in
    *" ${folder#model/} "*) ;;
    *) echo "$folder: is not in the list of $0" >&2; failed=1 ;;
  esac
done < <(git ls-files 'model/*.?pp' 'schedules/*.?pp' 'calib/*.?pp' 'experiments/*.?pp' | sed 's,/[^/]*$,,' | sort -u)
# All of the program is one namespace: a type that two headers define is two types with one name, which no linker sees.
twice=$(git ls-files 'model/*.hpp' 'schedules/*.hpp' 'calib/fit/*.hpp' 'experiments/*.hpp' |
  xargs sed -nE 's/^(struct|class|enum class) ([A-Za-z]+)( .*)?[{].*/\2/p' | sort | uniq -d)
if [ -n "$twice" ]; then echo "$0: defined in two headers: ${twice//$'\n'/, }" >&2; failed=1; fi
[ "$checked" -gt 50 ] || { echo "only $checked includes found: is this the source tree?" >&2; exit 1; }
[ "$failed" -eq 0 ] && echo "layers: $checked includes, all downward"
exit "$failed"
