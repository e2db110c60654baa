"""The mark on a Node that lastcall fails over (pure): what has been begun there, so that anybody can go on with it.

It is the annotation ``lastcall.dev/failover``, JSON. What a controller must not forget when it dies stands there, written
**before** it is done: that a machine may have been switched off, that the taint is ours, that it was switched on again,
which pods were removed from it.
Everything else is read from the cluster and from the devices anew.

The mark changes only under the Node's resourceVersion. The taint of ours comes and goes in the same write as ``tainted``,
so that there is no moment at which nobody knows whose it is.
"""

import functools
from datetime import UTC, datetime

import msgspec

from lastcall.failover.evidence.lost_pods import LostPod, merge_lost
from lastcall.model.base import Facts


class OwnerMark(Facts, frozen=True):
    """What has been begun for one boot of a node."""

    boot_id: str = msgspec.field(name="bootID")
    """The boot that is to end, or has ended."""
    policy: str
    """The FencePolicy by which it was begun."""
    began: str
    """RFC 3339, for people."""
    by: str
    """The identity of the controller that goes on with it: that of its leader election."""
    fencer: str = ""
    """Which fencer was told to switch off last."""
    switched_off: bool = False
    """A fencer may have been told to switch the machine off; it is not known whether it has."""
    tainted: bool = False
    """The taint out-of-service on the Node is ours. It is set only while a proof stands that the boot is over."""
    powered_on: bool = False
    """A fencer may have been told to switch the machine on again: nothing was left to force."""
    lost: tuple[LostPod, ...] = ()
    """The pods that are removed from it and made anew elsewhere, before they are removed."""


class UnreadableMark(Facts, frozen=True):
    """A mark that is not ours to understand; ``why`` as the end of a sentence."""

    why: str


@functools.lru_cache(maxsize=256)
def parse_mark(text: str) -> OwnerMark | UnreadableMark | None:
    """What stands on a Node; None if nothing does. Fields of later versions are passed over.

    What was read is kept: the limits read the marks of all nodes for each that is decided about.
    """
    if not text:
        return None
    try:
        mark = msgspec.json.decode(text, type=OwnerMark)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return UnreadableMark(why=f"cannot be read: {error}")
    return mark if mark.boot_id and mark.by else UnreadableMark(why="names no boot id or nobody that it belongs to")


def encode_mark(mark: OwnerMark) -> str:
    """The annotation's value."""
    return msgspec.json.encode(mark).decode()


def new_mark(*, boot_id: str, policy: str, by: str, wall: float) -> OwnerMark:
    """A new mark; ``wall``: seconds since 1970."""
    began = datetime.fromtimestamp(int(wall), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return OwnerMark(boot_id=boot_id, policy=policy, began=began, by=by)


def is_held_by_another(mark: OwnerMark, *, me: str, leader: str) -> bool:
    """Whether somebody else goes on with it: who made it, for as long as he leads.

    ``leader``: who holds the Lease of the leader election, as it was read last.
    """
    return mark.by != me and mark.by == leader


def merge_marks(there: str, wanted: OwnerMark, *, me: str, leader: str) -> OwnerMark | UnreadableMark:
    """What is written where a mark stands already. Unreadable: nothing may be written, and why.

    What another controller has begun for the same boot is not forgotten: it began when it began, and what it may have done
    it may have done. A taint is ours as the mark that is wanted says, since both are written together. A mark of another
    boot makes way.
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
