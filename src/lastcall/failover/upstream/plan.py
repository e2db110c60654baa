"""What happens to the pods and volumes of a snapshot: the document that ``lastcall failover plan`` prints.

The document's shape is a contract: fields are added, never changed or removed.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from lastcall.failover.upstream import attach_detach, caution, kept_pods, pod_gc, taint_eviction
from lastcall.failover.upstream.controller_manager_rules import DetachReason, RemovalReason
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model.base import Facts
from lastcall.model.snapshot import Snapshot


class ForcedDeletion(Facts, frozen=True):
    """A pod whose object is deleted with a grace period of 0."""

    namespace: str
    name: str
    reason: RemovalReason


class ForcedDetachment(Facts, frozen=True):
    """A VolumeAttachment that is deleted without the node's confirmation."""

    volume_attachment: str
    node: str
    reason: DetachReason


class Eviction(Facts, frozen=True):
    """A pod that is deleted with its own grace period, because of a taint."""

    namespace: str
    name: str
    at: datetime


class KeptPod(Facts, frozen=True):
    """A pod on a node in trouble that is left alone."""

    namespace: str
    name: str
    why: str


class FailoverPlan(Facts, frozen=True):
    """One round of each controller; each list is sorted by name.

    Each controller sees the same snapshot and not what the others do. So a pod can be both force-deleted and evicted in
    one round, as upstream does it.
    """

    force_delete: tuple[ForcedDeletion, ...]
    force_detach: tuple[ForcedDetachment, ...]
    evict: tuple[Eviction, ...]
    keep: tuple[KeptPod, ...]


def build_plan(snapshot: Snapshot, rules: PlanRules, now: datetime) -> FailoverPlan:
    """The plan for a snapshot taken at ``now``, which has a time zone."""
    cluster, utc = SnapshotIndex.from_snapshot(snapshot), now.astimezone(UTC)
    removed = {pod.key: why for pod, why in pod_gc.forced_removals(cluster, rules, utc)}
    evicted = {pod.key: at for pod, at in taint_eviction.taint_evictions(cluster, rules, utc)}
    detached = {one.metadata.name: (one, why) for one, why in attach_detach.forced_detachments(cluster, rules, utc)}
    return FailoverPlan(
        force_delete=tuple(
            ForcedDeletion(namespace=key[0], name=key[1], reason=removed[key]) for key in sorted(removed)
        ),
        force_detach=tuple(
            ForcedDetachment(volume_attachment=name, node=one.spec.node_name, reason=why)
            for name, (one, why) in sorted(detached.items(), key=lambda item: item[0])
        ),
        evict=tuple(Eviction(namespace=key[0], name=key[1], at=evicted[key]) for key in sorted(evicted)),
        keep=tuple(
            KeptPod(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                why=kept_pods.keep_reason(cluster, pod, rules, utc),
            )
            for pod in sorted(snapshot.pods, key=lambda pod: pod.key)
            if kept_pods.is_in_trouble(cluster, pod) and pod.key not in removed and pod.key not in evicted
        ),
    )


def held_back_notes(snapshot: Snapshot, rules: PlanRules, now: datetime) -> Iterator[str]:
    """Notes for people: out-of-service nodes from which, or from one of whose pods, nothing is forced, and why.

    The plan itself gives the reason for a pod that is left alone, but not for one that is evicted.
    """
    cluster = SnapshotIndex.from_snapshot(snapshot)
    for node in sorted(snapshot.nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        if node.out_of_service and (why := caution.force_objection(cluster, name, now)):
            yield f"nothing is forced from node {name}, which is out of service: it {why}"
    for pod in sorted((pod for pod, _ in taint_eviction.taint_evictions(cluster, rules, now)), key=lambda pod: pod.key):
        name, why = pod.spec.node_name, pod_gc.removal_objection(cluster, pod, rules, now)
        if why and not caution.force_objection(cluster, name, now):
            yield f"{'/'.join(pod.key)} is evicted, but not deleted by force: node {name} {why}"


def to_json(plan: FailoverPlan) -> bytes:
    """The plan as its JSON document; times in UTC with Z."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2)
