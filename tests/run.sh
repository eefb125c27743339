#!/usr/bin/env bash
# Builds everything and passes the tests: tests/run.sh [ctest arguments], as in tests/run.sh -L fast.
# Without arguments, or with TRIREME_FUZZ=1, libFuzzer also looks for inputs that crash the readers of a checkpoint's files;
# TRIREME_FUZZ=0 leaves it out.
# With TRIREME_SANITIZERS=1 the unit and thread-rank tests also run under the address, undefined-behaviour and thread sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."

launcher/packages.sh g++-aarch64-linux-gnu qemu-user  # for the tests that build for 64-bit ARM and emulate it
cmake --preset release
cmake --build --preset release
TRIREME_MODEL=$(launcher/default_model.sh)
TRIREME_GEMMA3_MODEL=$(launcher/gemma3_model.sh)
export TRIREME_MODEL TRIREME_GEMMA3_MODEL
passed=0
# Processes that are killed, links that are cut: on a machine that others use too, such a test can
# fail by its clock. It gets a second run and is named below; one that is named often has a bug to find.
ctest --test-dir build/release --output-on-failure --no-tests=error --repeat until-pass:2 "$@" || passed=$?
log=build/release/Testing/Temporary/LastTest.log
tests/rows.py "$log" || passed=1
grep -E '^[0-9]+/[0-9]+ Testing: ' "$log" | sort | uniq -d | sed 's|.*Testing: |did not pass in its first run: |'
if [ "$passed" -ne 0 ]; then
  exit "$passed"
fi

# What a stranger's files may hold, searched by libFuzzer for 30 s a target, two at a time.
if [ "${TRIREME_FUZZ:-$(($# == 0))}" = 1 ]; then
  launcher/packages.sh clang libclang-rt-14-dev
  cmake --preset fuzz
  cmake --build --preset fuzz
  ctest --preset fuzz
fi

if [ "${TRIREME_SANITIZERS:-0}" = 1 ]; then
  # The sanitizers want their own parts of the address space, which a kernel may have given away at random.
  fixed_addresses=()
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses=(setarch "$(uname -m)" -R)
  fi
  failed=()
  for preset in asan tsan; do
    cmake --preset "$preset"
    cmake --build --preset "$preset"
    "${fixed_addresses[@]}" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -L fast || failed+=("$preset")
  done
  if [ "${#failed[@]}" -ne 0 ]; then
    echo "tests failed under: ${failed[*]}" >&2
    exit 1
  fi
fi
