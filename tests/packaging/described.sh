#!/usr/bin/env bash
# Man pages and completion, made from the help, as the programs that read them see them. Shells that are not here are
# skipped.
#   tests/packaging/described.sh BUILD_DIR
set -euo pipefail
[ $# -eq 1 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }
build=$(realpath "$1")
described=$build/described
PATH=$build:$PATH

fail() { echo "$*" >&2; exit 1; }
expect() {  # WHO GIVEN WANTED...: each wanted word is among the given ones
  local who=$1 given=" $2 "
  shift 2
  for word in "$@"; do [[ $given == *" $word "* ]] || fail "$who does not offer '$word' but:$given"; done
}

# Every command has a page, without a warning; every option of its help stands there.
commands=$(moeline --help | sed -n '/^Subcommands:/,/^$/p' | awk '/^  [a-z]/ { print $1 }')
[ "$(wc -w <<<"$commands")" -ge 15 ] || fail "too few commands: $commands"
for command in $commands; do
  page=$described/man/moeline-$command.1
  if command -v groff >/dev/null; then
    warnings=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || fail "$page: $warnings"
  fi
  for option in $(moeline "$command" --help | grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    [ "$option" = --help ] || grep -qF -- "\\fB${option//-/\\-}\\fR" "$page" || fail "$page lacks $option"
  done
done
grep -q 'moeline\\-simulate' "$described/man/moeline.1" || fail "the program's page does not list simulate"

# bash
source "$described/completion/moeline.bash"
offered_by_bash() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _moeline
  echo "${COMPREPLY[*]}"
}
expect bash "$(offered_by_bash moeline s)" simulate search sweep
expect bash "$(offered_by_bash moeline simulate x.yaml --for)" --format --force
expect bash "$(offered_by_bash moeline simulate x.yaml --format "")" table json csv
expect bash "$(offered_by_bash moeline price h)" h100 h200 h800
expect bash "$(offered_by_bash moeline model deepseek)" deepseek-v3
expect bash "$(offered_by_bash moeline list "")" models hardware schedules families
expect bash "$(offered_by_bash moeline init "")" decode training-plan

# fish
if command -v fish >/dev/null; then
  offered_by_fish() { fish -c "source $described/completion/moeline.fish; complete -C '$1'" | cut -f1 | tr '\n' ' '; }
  expect fish "$(offered_by_fish 'moeline s')" simulate search sweep
  expect fish "$(offered_by_fish 'moeline simulate x.yaml --for')" --format --force
  expect fish "$(offered_by_fish 'moeline simulate x.yaml --format ')" table json csv
  expect fish "$(offered_by_fish 'moeline price h')" h100 h800
else
  echo "fish is not here: its completion was not tried"
fi

# zsh
if command -v zsh >/dev/null; then
  offered_by_zsh() {  # LINE WORD...
    local line=$1
    shift
    expect zsh "$("$(dirname "$0")/completed_by_zsh" "$described/completion" "$line" "$@")" "$@"
  }
  offered_by_zsh 'moeline s' simulate search sweep
  offered_by_zsh 'moeline simulate --for' --format --force
else
  echo "zsh is not here: its completion was not tried"
fi
echo "man pages and completion know every command and option"
