"""What would become of the pods and volumes of a snapshot: the document that ``lastcall failover plan`` prints.

The document's shape is a contract: fields are added, never changed or taken away.
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
    """A pod whose object is removed with a grace of 0."""

    namespace: str
    name: str
    reason: RemovalReason


class ForcedDetachment(Facts, frozen=True):
    """An attachment that is deleted although its node has not confirmed anything."""

    volume_attachment: str
    node: str
    reason: DetachReason


class Eviction(Facts, frozen=True):
    """A pod that is deleted with its own grace, because of a taint."""

    namespace: str
    name: str
    at: datetime


class KeptPod(Facts, frozen=True):
    """A pod of a node in trouble that is left alone."""

    namespace: str
    name: str
    why: str


class FailoverPlan(Facts, frozen=True):
    """One round of each controller, each list in the order of its names.

    Each controller sees the same snapshot: what one of them does is not seen by the others. So a pod can be removed by
    force and evicted in the same round, as upstream does it.
    """

    force_delete: tuple[ForcedDeletion, ...]
    force_detach: tuple[ForcedDetachment, ...]
    evict: tuple[Eviction, ...]
    keep: tuple[KeptPod, ...]


def build_plan(snapshot: Snapshot, rules: PlanRules, now: datetime) -> FailoverPlan:
    """The plan for a snapshot that was taken at ``now``, which has a time zone."""
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
    """For people: nodes that are out of service, and why nothing is forced from them, or from a pod, all the same.

    Of a pod that is left alone the plan says why itself; of one that is evicted it does not.
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
