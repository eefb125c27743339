#!/usr/bin/env bash
# Runs a command on a "node" that ssh does not reach: AGENT HOST COMMAND..., as mpirun calls its plm_rsh_agent. The words of
# the command are joined and read by a shell there, as ssh does it. Where HOST is looked for, in order:
#   $TRIREME_NODES/HOST         a file with the id of a process whose namespaces are the node's (network, host name, mounts)
#   a container named HOST      of docker or podman
#   /run/netns/HOST             a named network namespace; /etc/netns/HOST/hosts then is its /etc/hosts
set -euo pipefail

if [ "$#" -lt 2 ]; then
  echo "usage: $0 HOST COMMAND..." >&2
  exit 64
fi
host=$1
shift
command=$*

# Temporary files of one node must not meet those of another on the same disk.
temporary=${TMPDIR:-/tmp}/trireme-node-$host
in_node="mkdir -p '$temporary' && TMPDIR='$temporary' && export TMPDIR && $command"

holder_file=${TRIREME_NODES:-/run/trireme/nodes}/$host
if [ -r "$holder_file" ]; then
  exec nsenter --target "$(cat "$holder_file")" --net --uts --mount sh -c "$in_node"
fi
for engine in docker podman; do
  if command -v "$engine" >/dev/null && "$engine" container inspect "$host" >/dev/null 2>&1; then
    # -i would take the standard input of whoever calls.
    exec "$engine" exec "$host" sh -c "$command"
  fi
done
if [ -e "/run/netns/$host" ]; then
  exec ip netns exec "$host" unshare --uts sh -c "hostname '$host' && $in_node"
fi
echo "$0: no node \"$host\": no file $holder_file, no container and no network namespace of that name" >&2
exit 68
