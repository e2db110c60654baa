"""The storm guard's view of the cluster (pure): all nodes, and the fencings recorded on them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from lastcall.failover.evidence import owner_mark
from lastcall.failover.evidence.out_of_service_taint import is_like_ours
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits import fencing_history
from lastcall.failover.limits.storms import HOUR, Fencing, Member
from lastcall.failover.limits.tracked_node import TrackedNode
from lastcall.model.observed import WatchedNode

CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
ETCD = "node-role.kubernetes.io/etcd"


def list_members(knots: Iterable[TrackedNode], *, domain: str, etcd: Collection[str], now: float) -> list[Member]:
    """All nodes; ``domain`` is the label of failure domains, ``etcd`` names the nodes that run an etcd static pod."""
    return [
        Member(
            name=knot.node.metadata.name,
            healthy=knot.node.ready_condition.status == "True" and not knot.is_overdue(now),
            lost=knot.is_silent(now),
            domain=knot.node.metadata.labels.get(domain, ""),
            control_plane=_is_control_plane(knot.node),
            etcd=ETCD in knot.node.metadata.labels or knot.node.metadata.name in etcd,
        )
        for knot in knots
    ]


def list_fencings(
    knots: Iterable[TrackedNode],
    claims: Mapping[str, OwnerMark],
    done: Mapping[str, str],
    *,
    domain: str,
    now: float,
    wall: float,
) -> Iterator[Fencing]:
    """Open fencings (marks, and ``claims`` that are about to become marks), and those that ended within the hour.

    ``done``: the boot that is failed over, by node. Where the claim and the mark from the watch name two boots, both
    count: both were to be ended.

    Marks and taints date from a wall clock. It may be wrong, but none of them counts as lying in the future.
    """
    for knot in knots:
        name = knot.node.metadata.name
        marks = {mark.boot_id: mark for mark in (claims.get(name), readable_mark(knot.node)) if mark is not None}
        for mark in marks.values():
            yield Fencing(
                node=name,
                boot_id=mark.boot_id,
                domain=knot.node.metadata.labels.get(domain, ""),
                control_plane=_is_control_plane(knot.node),
                began=_counts_from(knot, mark, now, wall),
                ordered=mark.switched_off or mark.tainted,
                failed_over=mark.tainted and done.get(name) == mark.boot_id,
            )
        ended = past_fencings(name, knot.node.fencing_history_text, now=now, wall=wall)
        yield from (one for one in ended if one.boot_id not in marks)


def counts_from(*, began: float, ends: Collection[float], now: float) -> float:
    """The time from which an open fencing counts towards its hour: the earliest sign that its boot had ended.

    Without a sign the machine may be powered off at any time, so it counts from now, whenever it ``began``.
    """
    return max(began, min(ends)) if ends else now


def _counts_from(knot: TrackedNode, mark: OwnerMark, now: float, wall: float) -> float:
    """The signs are the out-of-service taint, which says that the boot is proved to be over, and a different boot ID.

    A mark stays ``tainted`` after the taint is removed; it does not record the time.
    """
    boot, tainted = knot.seen.boot, next((one for one in knot.node.spec.taints if is_like_ours(one)), None)
    ends = []
    if tainted and tainted.time_added:
        ends.append(_on_own_clock(tainted.time_added.timestamp(), now, wall))
    elif tainted and knot.seen.tainted is not None:
        ends.append(knot.seen.tainted)
    if boot and boot.id != mark.boot_id:
        ends.append(boot.since)
    began = _on_own_clock(_parse_seconds(mark.began, wall), now, wall)
    if mark.tainted and not ends:
        ends.append(began)
    return counts_from(began=began, ends=ends, now=now)


def past_fencings(name: str, text: str, *, now: float, wall: float) -> Iterator[Fencing]:
    """The fencings of one node that have ended. An unreadable history counts as one that ended just now."""
    found = fencing_history.parse_history(text)
    if isinstance(found, fencing_history.UnreadableHistory):
        yield closed_fencing(name, "", now)
        return
    for one in found:
        if (age := fencing_history.fencing_age(one, wall)) < HOUR:
            yield closed_fencing(name, one.boot_id, now - age)


def closed_fencing(name: str, boot_id: str, at: float) -> Fencing:
    """A fencing that ended ``at``. It counts for its hour, and for no other limit."""
    return Fencing(node=name, boot_id=boot_id, domain="", control_plane=False, began=at, open=False)


def readable_mark(node: WatchedNode) -> OwnerMark | None:
    """The mark that lastcall set on the node, if it can be read."""
    mark = owner_mark.parse_mark(node.mark_text)
    return mark if isinstance(mark, OwnerMark) else None


def _is_control_plane(node: WatchedNode) -> bool:
    return any(one in node.metadata.labels for one in CONTROL_PLANE)


def _on_own_clock(seconds: float, now: float, wall: float) -> float:
    """Converts a time of the wall clock to the controller's own clock; at most ``now``."""
    return now - max(0.0, wall - seconds)


def _parse_seconds(text: str, default: float) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return default
