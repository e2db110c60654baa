"""The mark on a Node under failover (pure): the record of its progress, from which any controller can continue.

It is the annotation ``lastcall.dev/failover``, in JSON. It holds what a controller must not forget when it dies,
written **before** the action: that the machine may have been powered off, that the taint is ours, that the machine was
powered on again, which pods were removed. Everything else is read again from the cluster and the devices.

The mark changes only under the Node's resourceVersion. Our taint is added and removed in the same write as ``tainted``,
so that its owner is known at every moment.
"""

import functools
from datetime import UTC, datetime

import msgspec

from lastcall.failover.evidence.lost_pods import LostPod, merge_lost
from lastcall.model.base import Facts


class OwnerMark(Facts, frozen=True):
    """The progress of the failover of one boot."""

    boot_id: str = msgspec.field(name="bootID")
    """The boot to be ended."""
    policy: str
    """The FencePolicy in effect at its start."""
    began: str
    """RFC 3339, for output."""
    by: str
    """The identity of the controller that continues it, as in the leader election."""
    fencer: str = ""
    """The fencer that last got an order to power off."""
    switched_off: bool = False
    """A fencer may have received an order to power the machine off; the outcome is unknown."""
    tainted: bool = False
    """The out-of-service taint on the Node is ours. It is set only while the boot is proved to be over."""
    powered_on: bool = False
    """A fencer may have received an order to power the machine on: nothing was left to force."""
    lost: tuple[LostPod, ...] = ()
    """The pods that are recreated elsewhere, recorded before their removal."""


class UnreadableMark(Facts, frozen=True):
    """A mark with content that lastcall does not know; ``why`` ends a sentence."""

    why: str


@functools.lru_cache(maxsize=256)
def parse_mark(text: str) -> OwnerMark | UnreadableMark | None:
    """Parses the annotation; None for an empty one. Unknown fields of later versions are ignored.

    Results are cached: for each decision the limits read the marks of all nodes.
    """
    if not text:
        return None
    try:
        mark = msgspec.json.decode(text, type=OwnerMark)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return UnreadableMark(why=f"cannot be read: {error}")
    return mark if mark.boot_id and mark.by else UnreadableMark(why="names no boot id or no owner")


def encode_mark(mark: OwnerMark) -> str:
    """The annotation's value."""
    return msgspec.json.encode(mark).decode()


def new_mark(*, boot_id: str, policy: str, by: str, wall: float) -> OwnerMark:
    """A new mark; ``wall``: seconds since 1970."""
    began = datetime.fromtimestamp(int(wall), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return OwnerMark(boot_id=boot_id, policy=policy, began=began, by=by)


def is_held_by_another(mark: OwnerMark, *, me: str, leader: str) -> bool:
    """Whether another controller continues this failover: its owner, as long as that one leads.

    ``leader``: the holder of the leader election's Lease as last read.
    """
    return mark.by != me and mark.by == leader


def merge_marks(there: str, wanted: OwnerMark, *, me: str, leader: str) -> OwnerMark | UnreadableMark:
    """The mark to write in place of an existing one. UnreadableMark: nothing may be written, and why.

    Progress that another controller recorded for the same boot is kept: its start, and all actions that may have
    happened. ``tainted`` is taken from ``wanted``, because both are written together. A mark of another boot is
    replaced.
    """
    found = parse_mark(there)
    if isinstance(found, UnreadableMark):
        return found
    if found is None:
        return wanted
    if is_held_by_another(found, me=me, leader=leader):
        return UnreadableMark(why=f"is held by {found.by}, which leads")
    if found.boot_id != wanted.boot_id:
        return wanted
    return msgspec.structs.replace(
        wanted,
        began=found.began,
        fencer=wanted.fencer or found.fencer,
        switched_off=wanted.switched_off or found.switched_off,
        powered_on=wanted.powered_on or found.powered_on,
        lost=merge_lost(found.lost, wanted.lost),
    )
