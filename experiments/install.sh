#!/usr/bin/env bash
# Installs the Debian packages that are missing, as root or with sudo.
#   experiments/install.sh [LIST]...     LIST: a file like packages.txt, which is the default
set -euo pipefail
[ $# -gt 0 ] || set -- "$(dirname "$0")/packages.txt"
packages=$(grep -hv '^#' "$@")
# A package may stand in for another: that of newer nodejs versions, from elsewhere, is npm too.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' | sed -n 's/^installed //p' | tr -s ', ' '\n')
missing=()
for package in $packages; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "run as root, or install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
