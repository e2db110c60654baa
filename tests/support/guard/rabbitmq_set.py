"""A StatefulSet of RabbitMQ, and the Secret with the login of its management API.

Each pod keeps its data in a directory of its name, on whatever node it is, as on a network volume. It writes its address into
another directory, which stands for DNS. The nodes reach each other by their names, at addresses that stay: a file of Erlang's
own stands for DNS there.
"""

import os

from support.guard.guarded_lab import RUN
from support.guard.rabbitmq_servers import PASSWORD, PROGRAMS, USER

NAME = "rabbitmq"
PORT = 15672
NET = "127.63.18"
NUMBERS = range(3)

START = r"""
set -eu
number=${POD_NAME##*-}
home=$SHARED/$POD_NAME
mkdir -p "$home"
echo "$POD_IP" > "$SHARED/peers/$POD_NAME"
sed "s/POD_IP/$POD_IP/" "$SHARED/rabbitmq.conf" > "$home/rabbitmq.conf"
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$SMALL -kernel inet_dist_use_interface {${NET//./,},$((number + 1))}"
export RABBITMQ_DIST_PORT=$((25672 + number)) RABBITMQ_MNESIA_BASE="$home" RABBITMQ_PID_FILE="$home/pid" RABBITMQ_LOGS=- RABBITMQ_LOG_BASE="$home"
export RABBITMQ_CONFIG_FILE="$home/rabbitmq" RABBITMQ_ADVANCED_CONFIG_FILE="$home/advanced"
run rabbitmq-server
"""


def host(number):
    """The name of a node's machine, as a headless Service gives it."""
    return f"{NAME}-{number}.{NAME}"


def node(number):
    """One epmd knows all of them, by what precedes the @, and by a port for each."""
    return f"{NAME}-{number}@{host(number)}"


def hosts():
    """Erlang's file of the names, which stands for DNS."""
    for number in NUMBERS:
        numbers = f"{NET}.{number + 1}".replace(".", ",")
        yield f'{{host, {{{numbers}}}, ["{host(number)}"]}}.'
    yield "{lookup, [file]}."


def configuration():
    """What all nodes have in common; ``POD_IP`` stands for the pod's address."""
    yield "listeners.tcp.1 = POD_IP:5672"
    yield "management.tcp.ip = POD_IP"
    yield f"management.tcp.port = {PORT}"
    yield f"default_user = {USER}"
    yield f"default_pass = {PASSWORD}"
    yield "loopback_users = none"
    yield "disk_free_limit.absolute = 1MB"
    yield "raft.wal_max_size_bytes = 8388608"
    yield "cluster_formation.peer_discovery_backend = classic_config"
    yield "cluster_formation.discovery_retry_interval = 500"
    yield from (f"cluster_formation.classic_config.nodes.{one + 1} = {node(one)}" for one in NUMBERS)


def login_secret():
    """The Secret that the GuardPolicy names."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "auth"}, "stringData": {"password": PASSWORD}}


def stateful_set(shared, *, epmd_port, user=None):
    """Three nodes; the first one makes the cluster, and the others join it."""
    small = "+S 1:1 +sbwt none"
    variables = {
        "SHARED": str(shared),
        "NET": NET,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "HOME": str(shared),
        "LANG": "C.UTF-8",
        "SMALL": small,
        "ERL_CRASH_DUMP_SECONDS": "0",
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_INETRC": str(shared / "hosts"),
        "RABBITMQ_USE_LONGNAME": "true",
        "RABBITMQ_CTL_ERL_ARGS": small,
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(shared / "plugins"),
    }
    fields = {"POD_NAME": "metadata.name", "POD_IP": "status.podIP"}
    environment = [
        *({"name": one, "value": value} for one, value in variables.items()),
        *({"name": one, "valueFrom": {"fieldRef": {"fieldPath": of}}} for one, of in fields.items()),
        {"name": "RABBITMQ_NODENAME", "value": f"$(POD_NAME)@$(POD_NAME).{NAME}"},
    ]
    container = {
        "name": NAME,
        "image": "none",
        "command": ["bash", "-c", RUN + START],
        "workingDir": str(shared),
        "env": environment,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 3},
    }
    spec = {"terminationGracePeriodSeconds": 60, "containers": [container]}
    if user is not None:
        spec["securityContext"] = {"runAsUser": user}
    labels = {"app": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME},
        "spec": {
            "serviceName": NAME,
            "replicas": len(NUMBERS),
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
