"""A StatefulSet of Redis without persistence, which promotes the best replica when its master is gone, and its client.

Each pod writes its address into a directory of the test, which stands for DNS. A pod that starts follows the master that
it finds; without one it promotes the replica that has received most; without any it is the master itself.

A member that does not answer is unready after 30 seconds, as with the probes of common charts. Until then the controller of
the StatefulSet counts it as one that serves.
"""

import contextlib
import socket
import time
from pathlib import Path

from support.guard.guarded_lab import RUN
from support.guard.writing_client import WritingClient

PORT = 6379

START = r"""
set -eu
say() { redis-cli -h "$1" -p 6379 --no-auth-warning "${@:2}" 2>/dev/null || true; }
offset() { say "$1" info replication | tr -d '\r' | sed -n 's/^slave_repl_offset:\|^master_repl_offset://p' | head -1; }
serve() { run redis-server --bind "$POD_IP" --port 6379 --save '' --appendonly no --dir "$DATA" --replica-announce-ip "$POD_IP" --repl-timeout 5 \
  --repl-ping-replica-period 1 --repl-diskless-sync-delay 0 --protected-mode no --shutdown-timeout "$SHUTDOWN" "$@"; exit; }
best= most=-1
for file in "$PEERS"/*; do
  [ -e "$file" ] && [ "$(basename "$file")" != "$POD_NAME" ] || continue
  peer=$(cat "$file")
  case $(timeout 2 redis-cli -h "$peer" -p 6379 role 2>/dev/null | head -1) in
    master) best=$peer; most=-2; break ;;
    slave) have=$(offset "$peer"); [ "${have:-0}" -gt "$most" ] && best=$peer most=${have:-0} ;;
  esac
done
echo "$POD_IP" > "$PEERS/$POD_NAME"
if [ -z "$best" ]; then serve; fi
if [ "$most" -ge 0 ]; then say "$best" replicaof no one; fi
serve --replicaof "$best" 6379
"""


def stateful_set(peers, *, replicas=3, grace=30, shutdown=10, name="redis"):
    """The StatefulSet; Redis itself waits up to ``shutdown`` seconds for its replicas when it is told to end."""
    environment = [
        {"name": "PEERS", "value": str(peers)},
        {"name": "DATA", "value": str(peers.parent)},
        {"name": "SHARED", "value": str(peers.parent)},
        {"name": "SHUTDOWN", "value": str(shutdown)},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    probe = {
        "exec": {
            "command": [
                "sh",
                "-c",
                'redis-cli -h "$POD_IP" -p 6379 info replication | grep -q "role:master\\|link_status:up"',
            ]
        }
    }
    container = {
        "name": "redis",
        "image": "none",
        "command": ["bash", "-c", RUN + START],
        "env": environment,
        "ports": [{"containerPort": PORT}],
        "readinessProbe": probe | {"periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 30},
    }
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": grace, "containers": [container]},
            },
        },
    }


class RedisConnection:
    """One connection that speaks just enough of the protocol."""

    def __init__(self, address, seconds=1.0):
        self._socket = socket.create_connection((address, PORT), seconds)
        self._file = self._socket.makefile("rb")

    def call(self, *words):
        """The answer: text, a number, a list, or an exception."""
        parts = [str(word).encode() for word in words]
        head = b"*%d\r\n" % len(parts)
        self._socket.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts))
        return self._read()

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.close()

    def _read(self):
        line = self._file.readline().rstrip(b"\r\n")
        if not line:
            raise ConnectionError("the server has closed")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise ConnectionError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._file.read(size + 2)[:-2].decode()
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        return rest.decode()


def ask(address, *words, seconds=1.0):
    """One answer; OSError if there is none."""
    connection = RedisConnection(address, seconds)
    try:
        return connection.call(*words)
    finally:
        connection.close()


def find_masters(peers):
    """The addresses of all that are masters now."""
    found = []
    for path in sorted(Path(peers).iterdir()):
        with contextlib.suppress(OSError):
            address = path.read_text().strip()
            if ask(address, "role", seconds=0.5)[0] == "master":
                found.append(address)
    return found


class RedisWriter(WritingClient):
    """Writes keys to the master; each value has ``size`` bytes."""

    def __init__(self, peers, *, pause=0.005, size=1):
        self._peers = peers
        self._keys = f"{time.monotonic_ns()}"
        self._value = "x" * size
        super().__init__(self._find_master, self._set, pause=pause)

    def _find_master(self):
        masters = find_masters(self._peers)
        return RedisConnection(masters[0]) if masters else None

    def _set(self, connection, number):
        return connection.call("set", f"{self._keys}-{number}", self._value) == "OK"

    def count_lost(self):
        """How many acknowledged writes the one master does not have."""
        [master] = find_masters(self._peers)
        connection = RedisConnection(master)
        try:
            return sum(connection.call("exists", f"{self._keys}-{number}") == 0 for number in self.acknowledged)
        finally:
            connection.close()
