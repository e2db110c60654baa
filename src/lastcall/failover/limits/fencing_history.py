"""The fencings of a node within the last hour (pure). They count after the mark is removed, and for a new leader.

The annotation ``lastcall.dev/fenced`` on the Node, as JSON. The same write that ends a fencing adds its entry: the one
that removes the mark, or replaces it by a mark for another boot. So there is no moment at which the fencing is recorded
nowhere. Times are on the writer's wall clock.
"""

from datetime import UTC, datetime

import msgspec

from lastcall.failover.evidence import owner_mark
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits.storms import HOUR
from lastcall.model.base import Facts, Time

MOST = 100
"""The number of entries that are kept; no policy has a reason to allow more fencings of one node in an hour."""


class PastFencing(Facts, frozen=True):
    """A boot of this node that was to be powered off; ``at`` is when that fencing ended."""

    boot_id: str = msgspec.field(name="bootID")
    at: Time


class UnreadableHistory(Facts, frozen=True):
    """The annotation has foreign content; ``why`` ends a sentence. It counts as one fencing that ended just now."""

    why: str


Text = tuple[PastFencing, ...] | UnreadableHistory


def parse_history(text: str) -> Text:
    """Reads the annotation's value; an empty text is an empty history."""
    if not text:
        return ()
    try:
        return msgspec.json.decode(text, type=tuple[PastFencing, ...], strict=True)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        return UnreadableHistory(why=f"cannot be read: {error}")


def ended_fencing(there: str, wanted: OwnerMark | None) -> OwnerMark | None:
    """The fencing that ends if ``wanted`` (None: no mark) replaces the mark ``there``; None if no fencing ends."""
    found = owner_mark.parse_mark(there)
    if not isinstance(found, OwnerMark) or not found.switched_off:
        return None
    return found if wanted is None or wanted.boot_id != found.boot_id else None


def add_fencing(text: str, mark: OwnerMark, *, wall: float) -> str:
    """The annotation's value with one more entry; entries older than an hour are dropped.

    An unreadable history becomes one known entry, dated now.
    """
    now = datetime.fromtimestamp(int(wall), UTC)
    found = parse_history(text)
    before = (PastFencing(boot_id="", at=now),) if isinstance(found, UnreadableHistory) else found
    kept = [one for one in before if one.boot_id != mark.boot_id and fencing_age(one, wall) < HOUR]
    return msgspec.json.encode([*kept, PastFencing(boot_id=mark.boot_id, at=now)][-MOST:]).decode()


def fencing_age(one: PastFencing, wall: float) -> float:
    """Seconds since the fencing ended. A time in the future counts as now: one of the two clocks is or was wrong."""
    return max(0.0, wall - one.at.timestamp())
