#!/usr/bin/env bash
# Compiles for 64-bit ARM, in a folder of its own: tests/aarch64.sh FOLDER [TARGET...]. Without targets everything but MPI, gRPC
# and CUDA. Exits with 77 (skipped) where Debian's g++-aarch64-linux-gnu is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "aarch64-linux-gnu-g++ is not installed (apt-get install g++-aarch64-linux-gnu); skipped"
  exit 77
fi
folder=$1
shift
if [ "$#" -eq 0 ]; then
  set -- trireme_launcher
fi
# Whether it compiles is the question, so nothing is optimised that does not say so itself.
cmake -S . -B "$folder" -G Ninja --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 \
  -DTRIREME_WITH_MPI=OFF -DTRIREME_WITH_GRPC=OFF
cmake --build "$folder" --target "$@"
