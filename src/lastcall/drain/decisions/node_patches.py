"""What a drain writes on a Node: the cordon, its mark and the conditions of KEP-5683, and how it takes them back (pure).

The conditions are written together, with the same reason, as ``kubectl drain`` of Kubernetes 1.38 writes them with
reasons of its own. A condition that another writer has set since is not touched.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from lastcall import names
from lastcall.model.balancer_marks import BalancerMark, MarkedNode, mark_patch, unmark_patch
from lastcall.model.drain_facts import DrainNode
from lastcall.model.drain_mark import DrainMark, read_drain_mark, write_drain_mark
from lastcall.model.failover_mark import describe_failover
from lastcall.model.observed import WatchedNode
from lastcall.model.pods import StatusCondition

Patch = dict[str, Any]

OUR_REASONS = (
    names.DRAIN_STARTED,
    names.DRAIN_COMPLETED,
    names.DRAIN_FAILED,
    names.DRAIN_INTERRUPTED,
    names.DRAIN_UNCORDONED,
)


class NodeReport(NamedTuple):
    """A state of a drain, as the two conditions say it."""

    reason: str
    in_progress: bool = False
    is_drained: bool = False


STARTED = NodeReport(names.DRAIN_STARTED, in_progress=True)
COMPLETED = NodeReport(names.DRAIN_COMPLETED, is_drained=True)
FAILED = NodeReport(names.DRAIN_FAILED)
INTERRUPTED = NodeReport(names.DRAIN_INTERRUPTED)
UNCORDONED = NodeReport(names.DRAIN_UNCORDONED)


def find_trouble(node: DrainNode, *, known_failover: str = "") -> str:
    """Why the node cannot be drained: nothing would confirm the end of its pods, or it is failed over. "" if it can.

    ``known_failover`` is what ``describe_failover`` said before a drain that passes owners by.
    """
    failover = describe_failover(node.metadata.annotations)
    if node.find_taint(names.OUT_OF_SERVICE):
        who = f"; {failover}" if failover else ""
        return f"it has the taint {names.OUT_OF_SERVICE}: its machine is off, and its pods are removed by failover{who}"
    if node.readiness not in ("", "True"):
        whose = failover or (
            "a lost node is a matter of lastcall controller, or of a person who knows that its machine is off"
        )
        return f"it is not ready (Ready={node.readiness}), so nothing confirms the end of its pods: {whose}"
    return f"{failover}: a node under failover is left to it" if failover != known_failover else ""


def begin_mark(node: DrainNode, new: DrainMark) -> DrainMark:
    """The mark of a drain that begins or goes on; ``new`` is one that has done nothing yet.

    A mark on a Node that is schedulable is over: somebody has uncordoned it. A cordon without a mark is not ours.
    """
    before = read_drain_mark(node.metadata.annotations)
    if before is None or not node.spec.unschedulable:
        return replace(new, cordoned=not node.spec.unschedulable)
    return replace(before, by=new.by, reason=new.reason or before.reason)


def cordon_patch(node: DrainNode, mark: DrainMark, *, balancers: Collection[BalancerMark], at: int) -> Patch:
    """The merge patch that cordons and marks the Node, if it still is as it was read.

    ``balancers`` are the marks for external load balancers that it sets too; ``at`` is the time in seconds since 1970.
    """
    patch = _node_patch(node, write_drain_mark(mark), mark_patch(_marked_node(node), balancers, at=at))
    patch["spec"]["unschedulable"] = True
    return patch


def finish_patch(node: DrainNode, mark: DrainMark, *, keep: bool, uncordon: bool, unmark: bool) -> Patch | None:
    """The merge patch at the end of a drain; None if the Node no longer has its mark.

    ``keep``: the mark stays, so that another run knows whose the cordon is. ``uncordon`` takes back our own cordon,
    ``unmark`` what drains have set for external load balancers.
    """
    now = read_drain_mark(node.metadata.annotations)
    if now is None or now.id != mark.id:
        return None
    takes_back = uncordon and now.cordoned and node.spec.unschedulable
    text = write_drain_mark(mark) if keep and not takes_back else None
    patch = _node_patch(node, text, unmark_patch(_marked_node(node)) if unmark else None)
    if takes_back:
        patch["spec"]["unschedulable"] = None
    return patch


def leftover_patch(node: WatchedNode) -> Mapping[str, Any] | None:
    """The merge patch that gives a Node back to external load balancers when its drain is over; None if nothing is ours.

    A schedulable Node has no drain: the cordon is set together with the marks, and whoever takes it back ends the drain.
    """
    about = node.metadata
    if node.spec.unschedulable:
        return None
    return unmark_patch(MarkedNode(about.labels, about.annotations, node.spec.taints, about.resource_version))


def has_uncordoned(patch: Patch | None) -> bool:
    """Whether a patch of ``finish_patch`` takes a cordon back."""
    return patch is not None and "unschedulable" in patch["spec"]


def _node_patch(node: DrainNode, mark: str | None, balancers: Mapping[str, Any] | None) -> Patch:
    """One compare-and-set of the mark and of what ``balancer_marks`` changes; ``mark`` None removes it."""
    found = balancers or {}
    metadata = found.get("metadata", {"resourceVersion": node.metadata.resource_version})
    annotations = {names.DRAIN_MARK: mark, **metadata.get("annotations", {})}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": {**found.get("spec", {})}}


def _marked_node(node: DrainNode) -> MarkedNode:
    about = node.metadata
    return MarkedNode(about.labels or {}, about.annotations or {}, node.spec.taints or (), about.resource_version)


def conditions_patch(node: DrainNode, state: NodeReport, message: str, wall: float) -> Patch | None:
    """The strategic merge patch of the Node's status, at ``wall`` (seconds since 1970); None if nothing is ours.

    At the beginning everything is ours but a DrainInProgress of the node's own shutdown; later only what we wrote.
    """
    wanted = {names.DRAIN_IN_PROGRESS: state.in_progress, names.DRAINED: state.is_drained}
    known = {one.type: one for one in node.status.conditions or ()}
    found = [
        _condition(kind, known.get(kind), value, state.reason, message, wall)
        for kind, value in wanted.items()
        if _is_ours(known.get(kind), begins=state is STARTED)
    ]
    return {"status": {"conditions": found}} if found else None


def _is_ours(condition: StatusCondition | None, *, begins: bool) -> bool:
    if condition is None:
        return begins
    if begins:
        return condition.status != "True" or condition.reason != names.REFUSED_REASON
    return condition.reason in OUR_REASONS


def _condition(
    kind: str, before: StatusCondition | None, value: bool, reason: str, message: str, wall: float
) -> Mapping[str, str]:
    now = f"{datetime.fromtimestamp(int(wall), UTC):%Y-%m-%dT%H:%M:%SZ}"
    status = "True" if value else "False"
    same = before is not None and before.status == status and before.last_transition_time
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": before.last_transition_time if before and same and before.last_transition_time else now,
    }
