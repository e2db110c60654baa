"""The pods that a node has lost and others make anew (pure): what has to be known of each to see whether it was replaced.

They stand in the mark on the Node before they are removed, since afterwards nothing else tells of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

import msgspec

from lastcall import names
from lastcall.failover.upstream.controller_manager_rules import FINISHED
from lastcall.model.base import Facts
from lastcall.model.observed import FailoverPod

MOST = 50
"""So many pods of a node are followed; others are made anew by the same controllers."""
ROOM = 32 * 1024
"""Bytes of JSON that they have at most."""
_ALL, _RESERVE = 256 * 1024, 32 * 1024
"""Bytes that all annotations of an object may have (``core/validation``), and those of them that are kept for the rest of ours."""
_STAYS = ("DaemonSet", "Node", "")
"""Kinds of owners that make no other pod elsewhere."""
_PLACE = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
"""Labels that a pod has of its node (``PodTopologyLabels``): what takes its place has those of another one."""
_OURS = (names.FAILOVER_ANNOTATION, names.FENCED)
STATEFUL = "StatefulSet"
"""The kind of owner that makes a pod anew under its name."""


class LostPod(Facts, frozen=True):
    """One of them."""

    namespace: str
    name: str
    uid: str
    kind: str
    """Of its controller."""
    owner: str
    """The uid of that."""
    since: str
    """RFC 3339 in whole seconds, by the API server's clock: what takes its place was not made before."""
    labels: Mapping[str, str] = {}

    @property
    def key(self) -> str:
        """Namespace and name, for people."""
        return f"{self.namespace}/{self.name}"


def lost_pod(pod: FailoverPod, *, seen: str) -> LostPod | None:
    """What is followed when the pod has gone; None if nothing takes its place, also as it has finished already.

    A controller makes another one when the deletion of this one was asked for, or later. If it was not yet, that comes after
    ``seen``: a time at which the API server has written something else, by its own clock.
    """
    owner = pod.controller_owner
    if owner is None or owner.kind in _STAYS or pod.status.phase in FINISHED:
        return None
    metadata = pod.metadata
    return LostPod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        kind=owner.kind,
        owner=owner.uid,
        since=_deletion_asked_at(pod) or max(metadata.creation_timestamp, seen),
        labels={label: value for label, value in metadata.labels.items() if label not in _PLACE},
    )


def _deletion_asked_at(pod: FailoverPod) -> str:
    """When its deletion was asked for: its time to end is counted from then (``registry/rest: BeforeDelete``).

    Empty if that cannot be said: a grace period may be any number of seconds, and the server's sum of it overflows.
    """
    metadata = pod.metadata
    if metadata.deletion_timestamp is None:
        return ""
    try:
        asked = metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    except OverflowError:
        return ""
    text = asked.strftime("%Y-%m-%dT%H:%M:%SZ") if asked.year >= 1970 else ""
    return text if text >= metadata.creation_timestamp else ""


def room_beside(annotations: Mapping[str, str]) -> int:
    """Bytes that they have on a Node with these annotations: a mark that is too large would be refused, and stop everything."""
    others = sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items() if key not in _OURS)
    return min(ROOM, _ALL - _RESERVE - others)


def merge_lost(before: Iterable[LostPod], more: Iterable[LostPod], *, room: int = ROOM) -> tuple[LostPod, ...]:
    """Each once, as it stood first, and as many of them as there is room for."""
    kept: dict[str, LostPod] = {}
    for one in (*before, *more):
        size = len(msgspec.json.encode(one)) + 1
        if one.uid not in kept and len(kept) < MOST and size <= room:
            kept[one.uid] = one
            room -= size
    return tuple(kept.values())


def newly_lost(known: Sequence[LostPod], found: Sequence[tuple[LostPod, str]]) -> Iterator[LostPod]:
    """Those of the pods that are there now (each with when it was made) that are to be followed beside ``known``.

    One that was made anew on the same node, in place of one that has gone from it, is not lost beside that one.
    """
    there = {one.uid for one, _ in found}
    gone = [one for one in known if one.uid not in there]
    uids = {one.uid for one in known}
    for one, made in found:
        if one.uid in uids:
            continue
        former = next((other for other in gone if _is_successor(one, made, other)), None)
        if former is None:
            yield one
        else:
            gone.remove(former)


def _is_successor(one: LostPod, made: str, other: LostPod) -> bool:
    named = other.kind != STATEFUL or one.key == other.key
    return one.owner == other.owner and named and bool(made) and made >= other.since
