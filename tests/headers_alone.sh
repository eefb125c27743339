#!/usr/bin/env bash
# Compiles every header of ours alone: tests/headers_alone.sh COMPILER INCLUDE_FOLDER...
set -euo pipefail
compiler=$1
shift
includes=()
for folder in "$@"; do
  includes+=(-isystem "$folder")
done
# The vector headers only compile with their instruction set and are held by the kernels' own objects.
find kernels topology runtime launcher -name '*.h' ! -name 'simd_*.h' -print0 |
  xargs -0 -P 2 -I {} sh -c '
    header=$1; shift
    printf "#include \"%s\"\n" "$header" | "$@" -std=c++20 -fsyntax-only -I. -x c++ - || { echo "$header does not compile alone" >&2; exit 255; }
  ' sh {} "$compiler" "${includes[@]}"
