"""The pods that a node lost and that controllers recreate elsewhere (pure): the data to recognize their replacements.

The mark on the Node records them before they are removed, because afterwards no other object does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

import msgspec

from lastcall import names
from lastcall.failover.upstream.controller_manager_rules import FINISHED
from lastcall.model.base import Facts
from lastcall.model.observed import FailoverPod

MOST = 50
"""The number of pods that are tracked per node; their controllers recreate the others just the same."""
ROOM = 32 * 1024
"""The most bytes of JSON for them."""
_ALL, _RESERVE = 256 * 1024, 32 * 1024
"""Bytes allowed for all annotations of an object (``core/validation``), and bytes reserved for our other ones."""
_STAYS = ("DaemonSet", "Node", "")
"""Kinds of owners that create no replacement elsewhere."""
_PLACE = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
"""Labels that a pod takes from its node (``PodTopologyLabels``); its replacement has those of another node."""
_OURS = (names.FAILOVER_ANNOTATION, names.FENCED)
STATEFUL = "StatefulSet"
"""The kind of owner that recreates a pod under the same name."""


class LostPod(Facts, frozen=True):
    """A lost pod, with the data to recognize its replacement."""

    namespace: str
    name: str
    uid: str
    kind: str
    """The kind of its controller."""
    owner: str
    """The UID of its controller."""
    since: str
    """RFC 3339 in whole seconds, on the API server's clock: its replacement is not older."""
    labels: Mapping[str, str] = {}

    @property
    def key(self) -> str:
        """Namespace and name, for display."""
        return f"{self.namespace}/{self.name}"


def lost_pod(pod: FailoverPod, *, seen: str) -> LostPod | None:
    """The record of a pod; None if it has no replacement elsewhere, or has finished.

    A controller creates a replacement at or after the request to delete this pod. If none was made yet, that will be
    after ``seen``: a time at which the API server made another write, on its own clock.
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
    """When the deletion was requested: the grace period counts from then (``registry/rest: BeforeDelete``).

    Empty if that is unknown: a grace period may be any number of seconds, and the server's sum of it overflows.
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
    """Bytes available on a Node with these annotations; an oversized mark would be rejected and block the failover."""
    others = sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items() if key not in _OURS)
    return min(ROOM, _ALL - _RESERVE - others)


def merge_lost(before: Iterable[LostPod], more: Iterable[LostPod], *, room: int = ROOM) -> tuple[LostPod, ...]:
    """Each pod once, in its first form, as many as there is room for."""
    kept: dict[str, LostPod] = {}
    for one in (*before, *more):
        size = len(msgspec.json.encode(one)) + 1
        if one.uid not in kept and len(kept) < MOST and size <= room:
            kept[one.uid] = one
            room -= size
    return tuple(kept.values())


def newly_lost(known: Sequence[LostPod], found: Sequence[tuple[LostPod, str]]) -> Iterator[LostPod]:
    """The pods (each with its creation time) to record in addition to ``known``.

    A pod that was recreated on the same node, in place of one that is gone, is not recorded again.
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
