#!/usr/bin/env bash
# The kernel tables of 64-bit ARM under emulation: tests/aarch64_kernels.sh FOLDER. Builds check_kernels as tests/aarch64.sh does and
# runs it with Debian's qemu-user. Exits with 77 (skipped) where the cross compiler or the emulator is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v qemu-aarch64 >/dev/null; then
  echo "qemu-aarch64 is not installed (apt-get install qemu-user); skipped"
  exit 77
fi
folder=$1
tests/aarch64.sh "$folder" check_kernels

started=$SECONDS
qemu-aarch64 -L /usr/aarch64-linux-gnu "$folder/tests/kernels/check_kernels" --table portable
echo "took $((SECONDS - started)) s"
