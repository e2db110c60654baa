"""What the storm guard is to know of the cluster (pure): all nodes, and the fencings that are told of on them."""

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
    """All nodes; ``domain`` is the label that names failure domains, ``etcd`` who runs a static pod of it."""
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
    """Those that are open: a node is marked, or is about to be (``claims``); and those that are over, of the last hour.

    ``done``: which boot of a node is failed over. Where the claim and the mark that the watch has shown name two boots, both
    were to end.

    What marks and taints say of their beginning is on a wall clock: it may be wrong, but is not taken to lie in the future.
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
    """From when an open fencing counts for its hour: from when its boot had ended, by the first of the signs of that.

    Without one the machine may be switched off at any time: it counts as one of now, whenever it ``began``.
    """
    return max(began, min(ends)) if ends else now


def _counts_from(knot: TrackedNode, mark: OwnerMark, now: float, wall: float) -> float:
    """The signs are the taint out-of-service, which says that the boot is proved to be over, and another boot.

    The mark says that it was tainted also if somebody has taken the taint away; it says not when.
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
    """Those of one node that are over; what cannot be read counts as one that is so just now."""
    found = fencing_history.parse_history(text)
    if isinstance(found, fencing_history.UnreadableHistory):
        yield closed_fencing(name, "", now)
        return
    for one in found:
        if (age := fencing_history.fencing_age(one, wall)) < HOUR:
            yield closed_fencing(name, one.boot_id, now - age)


def closed_fencing(name: str, boot_id: str, at: float) -> Fencing:
    """A fencing that is over since ``at``: it counts for its hour, and for nothing else."""
    return Fencing(node=name, boot_id=boot_id, domain="", control_plane=False, began=at, open=False)


def readable_mark(node: WatchedNode) -> OwnerMark | None:
    """Our mark on it, if it can be read."""
    mark = owner_mark.parse_mark(node.mark_text)
    return mark if isinstance(mark, OwnerMark) else None


def _is_control_plane(node: WatchedNode) -> bool:
    return any(one in node.metadata.labels for one in CONTROL_PLANE)


def _on_own_clock(seconds: float, now: float, wall: float) -> float:
    """A time of the wall clock on ours."""
    return now - max(0.0, wall - seconds)


def _parse_seconds(text: str, default: float) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return default
