"""A queue of due times that are postponed often (pure)."""

import heapq


class TimerQueue:
    """One due time per name. Postponing is free: the caller looks at the first due time and schedules again."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._set: dict[str, float] = {}

    def schedule(self, name: str, at: float) -> None:
        """Schedules a name for ``at``, or keeps an earlier due time."""
        before = self._set.get(name)
        if before is None or at < before:
            self._set[name] = at
            heapq.heappush(self._heap, (at, name))

    def pop_due(self, now: float) -> list[str]:
        """Removes and returns the names that are due, in order."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            if self._set.get(name) == at:
                del self._set[name]
                found.append(name)
        return found

    @property
    def next_due(self) -> float | None:
        """The first due time, or an earlier bound; None if the queue is empty."""
        return self._heap[0][0] if self._heap else None
