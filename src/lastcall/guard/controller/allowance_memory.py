"""The last allowances of ready pods: who asks again has been refused by somebody else (no I/O)."""

from datetime import datetime, timedelta

SAME_REQUEST = timedelta(seconds=1)
"""The API server may show one request several times, within milliseconds."""

ROOM = 1000
"""So many allowances are remembered; all are forgotten beyond them."""


class AllowanceMemory:
    """Those of this replica alone: another one finds out by itself when it is asked twice."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}

    def note(self, uid: str, now: datetime) -> datetime | None:
        """A pod is allowed to go. Returns when it was allowed before, if that was for another request; else None."""
        last = self._last.get(uid)
        if last is not None and now - last < SAME_REQUEST:
            return None
        if last is None and len(self._last) >= ROOM:
            self._last.clear()
        self._last[uid] = now
        return last
