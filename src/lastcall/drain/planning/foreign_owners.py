"""Other programs that already empty, reboot or remove a node of the drain (pure)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from lastcall.drain.planning.drain_case import DrainCase, DrainNote
from lastcall.model.balancer_marks import BalancerMark, owned_marks
from lastcall.model.base import Time
from lastcall.model.drain_facts import DrainNode
from lastcall.model.drain_objects import MEDIK8S_LEASES, OwnerLease
from lastcall.model.failover_mark import describe_failover
from lastcall.names import FAILOVER_ANNOTATION, NODE_SHUTDOWN_MARK, TO_BE_DELETED

KURED_LOCK = "weave.works/kured-node-lock"
"""On kured's DaemonSet, as JSON: the node that reboots, or a list of them."""

_TAINTS = {
    "karpenter.sh/disrupted": "Karpenter disrupts it",
    "karpenter.sh/disruption": "Karpenter disrupts it",
    TO_BE_DELETED: "cluster-autoscaler removes it",
    "DeletionCandidateOfClusterAutoscaler": "cluster-autoscaler is about to remove it",
}
_MARKS = {
    NODE_SHUTDOWN_MARK: "its agent shuts it down",
    "cluster.x-k8s.io/delete-machine": "Cluster API is to remove its machine",
}
_INTENTIONS = ("cluster-autoscaler is about to", "Cluster API is to remove")
"""What only says that a program would rather have this node than another."""

_LEAVE = "leave the node to it, or stop it first"


def list_owner_notes(case: DrainCase) -> Iterator[DrainNote]:
    """One note for each program and node."""
    for node in case.nodes:
        for owner in _list_owners(node, case):
            yield DrainNote(text=f"node {node.name}: {owner}", mend=_LEAVE)


def list_active_owners(case: DrainCase, ours: str) -> Iterator[str]:
    """The programs that work on a node now, with the node; holders of Leases that begin with ``ours`` do not count."""
    for node in case.nodes:
        for owner in _list_owners(node, case):
            if not owner.startswith((ours, *_INTENTIONS)):
                yield f"node {node.name}: {owner}"


def _list_owners(node: DrainNode, case: DrainCase) -> Iterator[str]:
    for key, said in _TAINTS.items():
        if node.find_taint(key) and not _is_own_taint(node, key):
            yield f"{said} (taint {key})"
    if failover := describe_failover(node.metadata.annotations):
        yield f"{failover} (annotation {FAILOVER_ANNOTATION}; lastcall failover explain {node.name} says how far it is)"
    for key, said in _MARKS.items():
        if key in (node.metadata.annotations or {}):
            yield f"{said} (annotation {key})"
    yield from _lease_owners(node, case)
    for one in case.facts.maintenances:
        if one.spec.node_name == node.name:
            yield f"node-maintenance-operator drains it (NodeMaintenance {one.metadata.name}: {one.spec.reason or 'no reason'})"
    yield from _machine_owners(node, case)
    yield from _kured_owners(node, case)


def _is_own_taint(node: DrainNode, key: str) -> bool:
    """Whether an earlier run has set the taint for external load balancers."""
    return key == TO_BE_DELETED and BalancerMark.TAINT in owned_marks(node.metadata.annotations or {})


def _lease_owners(node: DrainNode, case: DrainCase) -> Iterator[str]:
    for lease in case.facts.leases:
        place = lease.metadata.namespace, lease.metadata.name
        if place == (MEDIK8S_LEASES, f"node-{node.name}") and _is_held(lease, case):
            yield f"{lease.spec.holder_identity} maintains it (Lease {'/'.join(place)})"


def _is_held(lease: OwnerLease, case: DrainCase) -> bool:
    spec = lease.spec
    if not spec.holder_identity:
        return False
    if spec.renew_time is None or spec.lease_duration_seconds is None:
        return True
    return case.now < spec.renew_time + timedelta(seconds=spec.lease_duration_seconds)


def _machine_owners(node: DrainNode, case: DrainCase) -> Iterator[str]:
    for machine in case.facts.machines:
        reference = machine.status.node_ref
        if reference is None or reference.name != node.name:
            continue
        name = f"{machine.metadata.namespace}/{machine.metadata.name}"
        if machine.metadata.deletion_timestamp is not None:
            yield f"Cluster API removes its machine (Machine {name})"
        elif "cluster.x-k8s.io/delete-machine" in (machine.metadata.annotations or {}):
            yield f"Cluster API is to remove its machine first (annotation of Machine {name})"


def _kured_owners(node: DrainNode, case: DrainCase) -> Iterator[str]:
    for one in case.facts.daemon_sets or ():
        text = (one.metadata.annotations or {}).get(KURED_LOCK, "")
        if text and node.name in _locked_nodes(text, case.now):
            yield f"kured reboots it (annotation {KURED_LOCK} of DaemonSet {one.metadata.namespace}/{one.metadata.name})"


def _locked_nodes(text: str, now: datetime) -> Iterator[str]:
    """The nodes in a lock of kured: one, or several with ``concurrency``; none if it cannot be read."""
    try:
        lock = json.loads(text)
    except ValueError:
        return
    every = [lock, *_list_locks(lock)] if isinstance(lock, dict) else []
    for one in every:
        if isinstance(one, dict) and isinstance(name := one.get("nodeID"), str) and not _is_expired(one, now):
            yield name


def _list_locks(lock: Mapping[str, Any]) -> Sequence[Any]:
    locks = lock.get("locks")
    return locks if isinstance(locks, list) else ()


def _is_expired(lock: Mapping[str, Any], now: datetime) -> bool:
    """Whether kured itself no longer heeds it (``ttlExpired``): a TTL in nanoseconds since it was taken; 0 for none."""
    lifetime = lock.get("TTL")
    if not isinstance(lifetime, int) or not 0 < lifetime < 2**63:
        return False
    try:
        created = msgspec.convert(lock.get("created"), Time)
    except msgspec.ValidationError:
        return False
    return now - created >= timedelta(microseconds=lifetime / 1000)
