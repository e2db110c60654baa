"""How often a master's writes are paused for a failover that does not come about (no I/O).

A failover that runs into its time-out changes nothing, but clients have waited for it. Nobody but this process knows of
it: Redis tells it to its log alone. Another process begins to count anew.
"""

from dataclasses import dataclass

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 600.0
SETTLING_SECONDS = 60.0
TOLD_AFTER = 2
"""So many failovers in vain, and a person is needed."""

_ROOM = 1024


@dataclass(frozen=True)
class _Attempts:
    count: int
    last: float


class FailoverPauses:
    """Attempts by the member's uid; times are those of the event loop, in seconds."""

    def __init__(self) -> None:
        self._attempts: dict[str, _Attempts] = {}

    def count(self, uid: str) -> int:
        """How many failovers were started since the last one that came about."""
        found = self._attempts.get(uid)
        return found.count if found else 0

    def seconds_left(self, uid: str, now: float) -> float:
        """Until the next one may be started: 5 seconds after the first, twice as long after each, 10 minutes at most."""
        found = self._attempts.get(uid)
        if found is None:
            return 0.0
        pause = min(FIRST_PAUSE * 2.0 ** min(found.count - 1, 10), LONGEST_PAUSE)
        return max(0.0, found.last + pause - now)

    def is_recent(self, uid: str, now: float) -> bool:
        """Whether one was started in the last minute: so long what it leads through counts as progress."""
        found = self._attempts.get(uid)
        return found is not None and now - found.last < SETTLING_SECONDS

    def record_start(self, uid: str, now: float) -> None:
        """A failover is started now."""
        self._attempts[uid] = _Attempts(self.count(uid) + 1, now)
        if len(self._attempts) > _ROOM:
            del self._attempts[min(self._attempts, key=lambda one: self._attempts[one].last)]

    def forget(self, uid: str) -> None:
        """The member is no master any more."""
        self._attempts.pop(uid, None)
