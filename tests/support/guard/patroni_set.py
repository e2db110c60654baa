"""StatefulSets of Patroni with PostgreSQL, and of the etcd in which it keeps who leads.

Each pod keeps its data in a directory of its name, on whatever node it is, as on a network volume. It writes its address into
another directory, which stands for DNS. The etcd members reach each other at addresses that stay, as by their names.
"""

import os

from support.guard.guarded_lab import RUN
from support.guard.patroni_servers import PROGRAMS

NET = "127.63.16"
MOST_LAG = 2**20
"""Patroni's own default of ``maximum_lag_on_failover``, in bytes: a replica that lacks more never takes over."""

PATRONI = r"""
set -eu
mkdir -p "$SHARED/$POD_NAME"
echo "$POD_IP" > "$SHARED/peers/$POD_NAME"
export PATRONI_NAME=$POD_NAME PATRONI_RESTAPI_LISTEN=$POD_IP:8008 PATRONI_RESTAPI_CONNECT_ADDRESS=$POD_IP:8008
export PATRONI_POSTGRESQL_LISTEN=$POD_IP:5432 PATRONI_POSTGRESQL_CONNECT_ADDRESS=$POD_IP:5432
export PATRONI_POSTGRESQL_DATA_DIR=$SHARED/$POD_NAME/data PATRONI_POSTGRESQL_PGPASS=$SHARED/$POD_NAME/pgpass
run patroni "$SHARED/patroni.json"
"""

ETCD = r"""
set -eu
me=$NET.$((${POD_NAME##*-} + 1))
run etcd --name="$POD_NAME" --data-dir="$SHARED/$POD_NAME" --log-level=error \
  --listen-client-urls="http://$POD_IP:2379,http://$me:2379" --advertise-client-urls="http://$me:2379" \
  --listen-peer-urls="http://$me:2380" --initial-advertise-peer-urls="http://$me:2380" \
  --initial-cluster="etcd-0=http://$NET.1:2380,etcd-1=http://$NET.2:2380,etcd-2=http://$NET.3:2380" \
  --initial-cluster-state=new --heartbeat-interval=100 --election-timeout=1000
"""


def configuration(*, most_lag=MOST_LAG):
    """What all members of Patroni have in common."""
    dcs = {"ttl": 20, "loop_wait": 1, "retry_timeout": 5, "maximum_lag_on_failover": most_lag}
    small = {"shared_buffers": "16MB", "max_connections": 30, "max_wal_senders": 5, "unix_socket_directories": ""}
    fast = {"fsync": "off", "wal_keep_size": "256MB", "max_wal_size": "512MB", "wal_retrieve_retry_interval": "200ms"}
    return {
        "scope": "shop",
        "etcd3": {"hosts": [f"{NET}.{number}:2379" for number in (1, 2, 3)]},
        "bootstrap": {
            "dcs": {**dcs, "postgresql": {"use_pg_rewind": True, "parameters": {**small, **fast}}},
            "initdb": ["no-sync", "data-checksums", {"encoding": "UTF8"}, {"locale": "C"}],
        },
        "postgresql": {
            "bin_dir": str(PROGRAMS),
            "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
            "pg_hba": ["host all all 127.0.0.0/8 trust", "host replication all 127.0.0.0/8 trust"],
            "basebackup": ["no-sync", {"checkpoint": "fast"}],
        },
    }


def patroni_set(shared, *, user=None):
    """Three members; the first makes the database, and the others copy it."""
    return _stateful_set("patroni", PATRONI, shared, user=user, port=8008, path="/readiness", management="OrderedReady")


def etcd_set(shared, *, user=None):
    """Three members."""
    return _stateful_set("etcd", ETCD, shared, user=user, port=2379, path="/health", management="Parallel")


def _stateful_set(name, script, shared, *, user, port, path, management):
    fields = {"POD_NAME": "metadata.name", "POD_IP": "status.podIP"}
    environment = [
        {"name": "SHARED", "value": str(shared)},
        {"name": "NET", "value": NET},
        {"name": "HOME", "value": str(shared)},
        {"name": "LC_ALL", "value": "C.UTF-8"},
        *({"name": one, "valueFrom": {"fieldRef": {"fieldPath": of}}} for one, of in fields.items()),
    ]
    probe = {"httpGet": {"path": path, "port": port}, "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 3}
    container = {
        "name": name,
        "image": "none",
        "command": ["bash", "-c", RUN + script],
        "workingDir": str(shared),
        "env": environment,
        "readinessProbe": probe,
    }
    spec = {"terminationGracePeriodSeconds": 30, "containers": [container]}
    if user is not None and os.getuid() == 0:
        spec["securityContext"] = {"runAsUser": user}  # PostgreSQL refuses root
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": 3,
            "podManagementPolicy": management,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
