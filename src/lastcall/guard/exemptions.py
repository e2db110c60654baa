"""Deletions of guarded pods that are allowed whatever the application says (pure).

In each of them a refusal would help nobody, or would leave an object for ever. The order is that of their cost.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from lastcall.guard.owners import list_owners
from lastcall.model.admission import Removal
from lastcall.model.base import Facts
from lastcall.model.guard_facts import GuardedMetadata, GuardFacts
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall.model.shutdown_node import read_mark
from lastcall.names import GUARD_BYPASS_UNTIL, GUARD_RELEASER, MIRROR_ANNOTATION, OUT_OF_SERVICE

KUBELET = "system:node:"
"""How the names of kubelets begin. A kubelet's DELETE that is refused leaves a terminated pod's object for ever."""

AGENT = "system:serviceaccount:lastcall-system:lastcall-agent"
BOUND_NODE = "authentication.kubernetes.io/node-name"
"""The node to which the token of a service account is bound, in the user's extra fields."""

LONGEST_BYPASS = timedelta(days=366)
"""A bypass that ends later is a mistake, and does not count."""


class Exemption(Facts, frozen=True):
    """Why a deletion is allowed. ``name`` is for the audit log."""

    name: str
    text: str


def find_exemption(removal: Removal, pod: Pod, facts: GuardFacts, now: datetime) -> Exemption | None:
    """The first exemption that applies; None if the application decides."""
    return next(_list_exemptions(removal, pod, facts, now), None)


def bypass_warnings(pod: Pod, facts: GuardFacts) -> Iterator[str]:
    """Bypass annotations that cannot be read."""
    for title, metadata in _bypass_places(pod, facts):
        text = (metadata.annotations or {}).get(GUARD_BYPASS_UNTIL)
        if text and _read_time(text) is None:
            yield f"annotation {GUARD_BYPASS_UNTIL} of {title} does not count: {text!r} is not an RFC 3339 time"


def _list_exemptions(removal: Removal, pod: Pod, facts: GuardFacts, now: datetime) -> Iterator[Exemption]:
    if removal.user.username == GUARD_RELEASER:
        yield Exemption(name="releaser", text="the guard deletes it itself")
    if removal.user.username.startswith(KUBELET):
        yield Exemption(name="kubelet", text="a kubelet removes a pod that has ended")
    yield from _pod_exemptions(removal, pod)
    yield from _place_exemptions(pod, facts)
    yield from _owner_exemptions(pod, facts)
    yield from _bypass_exemptions(pod, facts, now)
    if _is_shutdown_agent(removal, pod, facts):
        yield Exemption(name="node-shutdown", text="its node shuts down, and the deadline wins")


def _pod_exemptions(removal: Removal, pod: Pod) -> Iterator[Exemption]:
    if removal.precondition and removal.precondition != pod.metadata.uid:
        yield Exemption(name="precondition", text="the request is for an earlier pod of this name and will fail")
    if pod.metadata.deletion_timestamp is not None:
        yield Exemption(name="terminating", text="it is being deleted already")
    if pod.is_finished:
        yield Exemption(name="finished", text=f"it has {pod.status.phase.lower()}")
    if pod.status.phase == "Pending" and not pod.spec.node_name:
        yield Exemption(name="unscheduled", text="it is not scheduled yet")
    if MIRROR_ANNOTATION in (pod.metadata.annotations or {}):
        yield Exemption(name="mirror", text="it mirrors a static pod")


def _place_exemptions(pod: Pod, facts: GuardFacts) -> Iterator[Exemption]:
    namespace = facts.namespaces.get(pod.metadata.namespace)
    if namespace and namespace.is_terminating:
        yield Exemption(name="namespace", text="its namespace is being deleted")
    if not pod.spec.node_name:
        return
    node = facts.nodes.get(pod.spec.node_name)
    if node is None:
        yield Exemption(name="no-node", text=f"its node {pod.spec.node_name} does not exist")
    elif any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ()):
        yield Exemption(name="out-of-service", text=f"its node {pod.spec.node_name} is out of service")


def _owner_exemptions(pod: Pod, facts: GuardFacts) -> Iterator[Exemption]:
    chain = list_owners(pod, facts)
    if chain.missing:
        yield Exemption(
            name="owner-gone", text=f"its {chain.missing.kind} {chain.missing.name} does not exist any more"
        )
    if deleted := chain.deleted:
        yield Exemption(name="owner-deleted", text=f"its {deleted.kind} {deleted.metadata.name} is being deleted")
    workload = chain.workload
    if workload and workload.spec and workload.spec.replicas == 0:
        yield Exemption(name="scaled-to-zero", text=f"its {workload.kind} {workload.metadata.name} has no replicas")


def _bypass_exemptions(pod: Pod, facts: GuardFacts, now: datetime) -> Iterator[Exemption]:
    for title, metadata in _bypass_places(pod, facts):
        until = _read_time((metadata.annotations or {}).get(GUARD_BYPASS_UNTIL, ""))
        if until and now < until <= now + LONGEST_BYPASS:
            yield Exemption(name="bypass", text=f"annotation {GUARD_BYPASS_UNTIL} of {title} allows it")


def _bypass_places(pod: Pod, facts: GuardFacts) -> Iterator[tuple[str, ObjectMetadata | GuardedMetadata]]:
    yield f"pod {pod.key}", pod.metadata
    if namespace := facts.namespaces.get(pod.metadata.namespace):
        yield f"namespace {pod.metadata.namespace}", namespace.metadata
    if node := facts.nodes.get(pod.spec.node_name):
        yield f"node {pod.spec.node_name}", node.metadata


def _read_time(text: str) -> datetime | None:
    try:
        found = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None
    return found if found.tzinfo else None


def _is_shutdown_agent(removal: Removal, pod: Pod, facts: GuardFacts) -> bool:
    """Whether the agent of the pod's node asks, by a token of that node, while the node's shutdown is recorded."""
    node = facts.nodes.get(pod.spec.node_name)
    own = (removal.user.extra or {}).get(BOUND_NODE, ())
    return bool(
        node
        and removal.user.username == AGENT
        and pod.spec.node_name in own
        and read_mark(node.metadata.annotations) is not None
    )
