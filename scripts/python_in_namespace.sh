#!/bin/sh
# The interpreter of .venv in a network namespace of its own, with a loopback interface: campaigns in two of
# them do not share the measurement lock of the host, and servers do not share ports. Needs root.
set -eu
export PYTHON_IN_NAMESPACE="$(dirname "$0")/../.venv/bin/python"
exec unshare --net -- sh -c 'ip link set lo up && exec "$PYTHON_IN_NAMESPACE" "$@"' sh "$@"
