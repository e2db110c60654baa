"""What a node was fenced for within the last hour (pure): it counts, also when its mark has gone and another leads.

The annotation ``lastcall.dev/fenced`` on the Node, JSON. It is written together with what ends a fencing, so that there is
no moment at which nobody knows of it: with the taking away of the mark, or with the mark of another boot. Times are on the
wall clock of who has written them.
"""

from datetime import UTC, datetime

import msgspec

from lastcall.failover.evidence import owner_mark
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits.storms import HOUR
from lastcall.model.base import Facts, Time

MOST = 100
"""So many are kept; no policy has a reason to allow more of one node within an hour."""


class PastFencing(Facts, frozen=True):
    """A boot of this node was to be switched off, and that was over ``at``."""

    boot_id: str = msgspec.field(name="bootID")
    at: Time


class UnreadableHistory(Facts, frozen=True):
    """What stands there is not ours; ``why`` as the end of a sentence. It counts as one that is over just now."""

    why: str


Text = tuple[PastFencing, ...] | UnreadableHistory


def parse_history(text: str) -> Text:
    """What stands on a Node; nothing if there is no annotation."""
    if not text:
        return ()
    try:
        return msgspec.json.decode(text, type=tuple[PastFencing, ...], strict=True)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        return UnreadableHistory(why=f"cannot be read: {error}")


def ended_fencing(there: str, wanted: OwnerMark | None) -> OwnerMark | None:
    """The fencing that is over when ``wanted`` (None: no mark) is written where ``there`` stands; None if there is none."""
    found = owner_mark.parse_mark(there)
    if not isinstance(found, OwnerMark) or not found.switched_off:
        return None
    return found if wanted is None or wanted.boot_id != found.boot_id else None


def add_fencing(text: str, mark: OwnerMark, *, wall: float) -> str:
    """The annotation with one more; what is older than an hour goes.

    What could not be read counts from now on as one that is known.
    """
    now = datetime.fromtimestamp(int(wall), UTC)
    found = parse_history(text)
    before = (PastFencing(boot_id="", at=now),) if isinstance(found, UnreadableHistory) else found
    kept = [one for one in before if one.boot_id != mark.boot_id and fencing_age(one, wall) < HOUR]
    return msgspec.json.encode([*kept, PastFencing(boot_id=mark.boot_id, at=now)][-MOST:]).decode()


def fencing_age(one: PastFencing, wall: float) -> float:
    """Seconds since it was over; one of the future is just now: somebody's clock was, or is, wrong."""
    return max(0.0, wall - one.at.timestamp())
