#!/usr/bin/env bash
# Compiles everything but MPI, gRPC and CUDA for 64-bit ARM, in a folder of its own: tests/aarch64.sh FOLDER.
# Exits with 77 (skipped) where Debian's g++-aarch64-linux-gnu is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "aarch64-linux-gnu-g++ is not installed (apt-get install g++-aarch64-linux-gnu); skipped"
  exit 77
fi
# Whether it compiles is the question, so nothing is optimised.
cmake -S . -B "$1" -G Ninja --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 \
  -DTRIREME_WITH_MPI=OFF -DTRIREME_WITH_GRPC=OFF
cmake --build "$1" --target trireme_launcher
