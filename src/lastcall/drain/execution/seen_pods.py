"""What a drain sees of pods in its watch: since when they terminate, on its own clock."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from lastcall.drain.decisions.pod_progress import SeenPod, is_guarded
from lastcall.model.drain_facts import DrainPod
from lastcall.ports.node import Clock


class PodSight:
    """Remembers what it made of each version of a pod."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[DrainPod, SeenPod]] = {}

    def look(self, pods: Iterable[DrainPod]) -> Mapping[str, SeenPod]:
        """The pods by uid."""
        known = self._known
        self._known = {pod.metadata.uid: (pod, self._see(pod, known.get(pod.metadata.uid))) for pod in pods}
        return {uid: seen for uid, (_, seen) in self._known.items()}

    def _see(self, pod: DrainPod, before: tuple[DrainPod, SeenPod] | None) -> SeenPod:
        if before is not None and before[0] is pod:
            return before[1]
        guarded = is_guarded(pod)
        if pod.metadata.deletion_timestamp is None:
            return SeenPod(is_guarded=guarded)
        now = self._clock.boottime()
        since = now if before is None or before[1].terminating_since is None else before[1].terminating_since
        return SeenPod(
            terminating_since=since,
            grace=pod.metadata.deletion_grace_period_seconds,
            overdue_since=self._on_our_clock(pod.metadata.deletion_timestamp, now),
            is_guarded=guarded,
        )

    def _on_our_clock(self, text: str, now: float) -> float | None:
        try:
            moment = msgspec.convert(text, datetime)
        except msgspec.ValidationError:
            return None
        return None if moment.tzinfo is None else now + moment.timestamp() - self._clock.wall()
