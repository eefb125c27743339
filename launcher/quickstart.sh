#!/usr/bin/env bash
# From nothing to an answer: installs packages, builds, gets the default model, starts the fleet of a topology file (a balancer
# and a replica of two tensor ranks, unless another file is named in TRIREME_TOPOLOGY), asks it a question over gRPC, streams
# the answer, stops the fleet.
set -euo pipefail
cd "$(dirname "$0")/.."

question=${1:-What is the capital of France?}
topology=${TRIREME_TOPOLOGY:-deploy/topologies/laptop.yaml}
program=build/release/trireme

launcher/packages.sh
cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log >&2; exit 1; }
rm -f build-configure.log
cmake --build --preset release --target trireme
TRIREME_MODEL=$(launcher/default_model.sh)
export TRIREME_MODEL

log=$(mktemp)
port_of() { sed -n 's/.* fleet serving port=\([0-9]*\).*/\1/p' "$log"; }

echo "starting $topology"
"$program" up --plain "$topology" 2>"$log" &
fleet=$!
trap 'kill "$fleet" 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 600); do
  port=$(port_of)
  if [ -n "$port" ]; then break; fi
  if ! kill -0 "$fleet" 2>/dev/null; then
    echo "the fleet did not start:" >&2
    cat "$log" >&2
    exit 1
  fi
  sleep 0.1
done
if [ -z "$port" ]; then
  echo "the fleet did not start within a minute:" >&2
  cat "$log" >&2
  exit 1
fi
"$program" status "$topology"

echo
echo "asking 127.0.0.1:$port over gRPC: $question"
echo
"$program" generate --endpoint "127.0.0.1:$port" --system "You answer in one short sentence." --chat "$question" \
  --temperature 0 --max-tokens 64
echo
kill "$fleet"  # finish what runs, then end
wait "$fleet"
trap 'rm -f "$log"' EXIT

cat <<TRY
The fleet has stopped. What to try next:
  $program up $topology      (then: $program top $topology)
  $program chat --model $TRIREME_MODEL
  $program serve --model $TRIREME_MODEL --listen 127.0.0.1:8080
  $program bench --model $TRIREME_MODEL --threads 2
  tests/run.sh
TRY
