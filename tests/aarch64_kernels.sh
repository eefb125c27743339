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

# check PROCESSOR ARGUMENT...: check_kernels on a processor that qemu emulates.
check() {
  echo "check_kernels ${*:2} (emulated $1)"
  qemu-aarch64 -cpu "$1" -L /usr/aarch64-linux-gnu "$folder/tests/kernels/check_kernels" "${@:2}"
}

started=$SECONDS
check neoverse-n1 --table neon
echo "took $((SECONDS - started)) s"
# A processor of ARMv8.0 has no dot product: it gets the other table.
refusal=0
check cortex-a72 --table neon rows || refusal=$?
if [ "$refusal" -ne 2 ]; then
  echo "exit code $refusal, not 2: table neon is offered to a processor that does not run it" >&2
  exit 1
fi
check cortex-a72 --table portable rows
