"""What a drain sees of pods in its watch: since when they terminate, on its own clock."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from lastcall.drain.decisions.pod_progress import SeenPod, is_guarded
from lastcall.drain.planning.opt_outs import OptOut, node_opt_outs, pod_opt_outs
from lastcall.model.drain_facts import DrainNode, DrainPod
from lastcall.ports.node import Clock


class PodSight:
    """Remembers what it made of each version of a pod. ``ignores_opt_outs``: what other tools may do does not count."""

    def __init__(self, clock: Clock, *, ignores_opt_outs: bool = False) -> None:
        self._clock, self._ignores = clock, ignores_opt_outs
        self._held: Mapping[str, str] = {}
        self._known: dict[str, tuple[DrainPod, SeenPod]] = {}

    def look(self, pods: Iterable[DrainPod], nodes: Iterable[DrainNode] = ()) -> Mapping[str, SeenPod]:
        """The pods of the nodes by uid."""
        known = self._known
        held = {} if self._ignores else {node.name: _join(node_opt_outs(node)) for node in nodes}
        same, self._held = held == self._held, held
        self._known = {pod.metadata.uid: (pod, self._see(pod, known.get(pod.metadata.uid), same)) for pod in pods}
        return {uid: seen for uid, (_, seen) in self._known.items()}

    def _see(self, pod: DrainPod, before: tuple[DrainPod, SeenPod] | None, same: bool) -> SeenPod:
        if same and before is not None and before[0] is pod:
            return before[1]
        guarded = is_guarded(pod)
        if pod.metadata.deletion_timestamp is None:
            return SeenPod(is_guarded=guarded, opt_out=self._opt_out(pod))
        now = self._clock.boottime()
        since = now if before is None or before[1].terminating_since is None else before[1].terminating_since
        return SeenPod(
            terminating_since=since,
            grace=pod.metadata.deletion_grace_period_seconds,
            overdue_since=self._on_our_clock(pod.metadata.deletion_timestamp, now),
            is_guarded=guarded,
        )

    def _opt_out(self, pod: DrainPod) -> str:
        if self._ignores:
            return ""
        return self._held.get(pod.spec.node_name) or _join(pod_opt_outs(pod))

    def _on_our_clock(self, text: str, now: float) -> float | None:
        try:
            moment = msgspec.convert(text, datetime)
        except msgspec.ValidationError:
            return None
        return None if moment.tzinfo is None else now + moment.timestamp() - self._clock.wall()


def _join(found: Iterable[OptOut]) -> str:
    return "; ".join(one.why for one in found)
