#!/usr/bin/env bash
# Installs the Debian packages that Trireme is built with and tested with, by name, if any is missing: launcher/packages.sh
# [further packages]. Needs root or sudo.
set -euo pipefail

packages=(
  ca-certificates cmake g++ ninja-build pkg-config ccache
  libabsl-dev libprotobuf-dev protobuf-compiler libgrpc++-dev protobuf-compiler-grpc
  libopenmpi-dev openmpi-bin libpcre2-dev libssl-dev libutf8proc-dev nlohmann-json3-dev libyaml-cpp-dev
  prometheus-cpp-dev prometheus
  libgtest-dev libgmock-dev python3 python3-pip python3-grpcio python3-protobuf unzip iproute2 slurm-wlm faketime
  "$@"
)

missing=()
for package in "${packages[@]}"; do
  if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing+=("$package")
  fi
done
if [ "${#missing[@]}" -eq 0 ]; then
  exit 0
fi

run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "packages are missing and this user is neither root nor has sudo: ${missing[*]}" >&2
    exit 77
  fi
  run_as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${run_as_root[@]}" apt-get update -qq
"${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
