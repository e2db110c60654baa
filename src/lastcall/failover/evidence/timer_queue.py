"""Moments at which something is to be looked at, each put off again and again (pure)."""

import heapq


class TimerQueue:
    """One moment for each name. Putting one off costs nothing: it is looked at when its first moment comes."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._set: dict[str, float] = {}

    def schedule(self, name: str, at: float) -> None:
        """It is due at ``at``, or at the moment that was set before, if that comes earlier."""
        before = self._set.get(name)
        if before is None or at < before:
            self._set[name] = at
            heapq.heappush(self._heap, (at, name))

    def pop_due(self, now: float) -> list[str]:
        """Those whose moment has come, in order; they have none any more."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            if self._set.get(name) == at:
                del self._set[name]
                found.append(name)
        return found

    @property
    def next_due(self) -> float | None:
        """The first moment, at the earliest; None if there is none."""
        return self._heap[0][0] if self._heap else None
