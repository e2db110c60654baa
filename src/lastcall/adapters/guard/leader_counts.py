"""How the number of a member's leaders falls while they are moved away (no I/O).

Only this process knows the count at the beginning; another process begins to count anew.
"""

from dataclasses import dataclass

STALL_SECONDS = 120.0
"""Without a leader less for so long, and a person is told. PD hears of each region once a minute."""

_ROOM = 1024


@dataclass(frozen=True)
class LeaderMove:
    """How far it is. ``percent`` and ``eta_seconds`` are None as long as nothing tells them."""

    percent: int | None
    eta_seconds: int | None
    is_stalled: bool


@dataclass(frozen=True)
class _Counted:
    first: int
    began_at: float
    left: int
    fell_at: float


class LeaderCounts:
    """By the member's uid; times are those of the event loop, in seconds."""

    def __init__(self) -> None:
        self._known: dict[str, _Counted] = {}

    def observe(self, uid: str, left: int, now: float) -> LeaderMove:
        """So many are left now. If there are more than at the beginning, this is the beginning."""
        known = self._known.get(uid)
        if known is None or left > known.first:
            known = _Counted(left, now, left, now)
        elif left != known.left:
            known = _Counted(known.first, known.began_at, left, now if left < known.left else known.fell_at)
        self._known[uid] = known
        if len(self._known) > _ROOM:
            del self._known[min(self._known, key=lambda one: self._known[one].fell_at)]
        return _describe_move(known, now)

    def forget(self, uid: str) -> None:
        """They are of no concern any more."""
        self._known.pop(uid, None)


def _describe_move(known: _Counted, now: float) -> LeaderMove:
    moved, seconds = known.first - known.left, now - known.began_at
    return LeaderMove(
        percent=100 * moved // known.first if known.first else None,
        eta_seconds=int(known.left * seconds / moved) if moved else None,
        is_stalled=now - known.fell_at >= STALL_SECONDS,
    )
