"""Switchovers that this process has begun, and what was answered (no I/O).

An application's members do not tell that a switchover is under way, nor that one was refused. Another process knows of
none, and reads what has become of it.
"""

from dataclasses import dataclass

SETTLING_SECONDS = 60.0
"""So long a switchover may take, until the former leader follows the new one; then a person is told."""

_ROOM = 1024


@dataclass(frozen=True)
class Switchover:
    """When it was begun, and why it was refused; "" if it was not."""

    begun_at: float
    refusal: str = ""


class Switchovers:
    """By the member's uid; times are those of the event loop, in seconds."""

    def __init__(self) -> None:
        self._known: dict[str, Switchover] = {}

    def find(self, uid: str, now: float) -> Switchover | None:
        """The one that was begun in the last minute."""
        found = self._known.get(uid)
        return found if found and now - found.begun_at < SETTLING_SECONDS else None

    def record(self, uid: str, now: float, refusal: str = "") -> None:
        """One is begun now, or was refused."""
        self._known[uid] = Switchover(now, refusal)
        if len(self._known) > _ROOM:
            del self._known[min(self._known, key=lambda one: self._known[one].begun_at)]

    def forget(self, uid: str) -> None:
        """It has come about, or is of no concern any more."""
        self._known.pop(uid, None)
