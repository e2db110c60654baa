"""When a pod of a workload really serves, from what reached its container (pure)."""

import math
from collections.abc import Iterable, Mapping, Sequence

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind
from lastcall_lab.simulation.time_spans import TimeSpan, join_spans


def serving_span(life: ContainerLife, workload: ScenarioWorkload) -> TimeSpan:
    """From being ready to the end, or to SIGTERM for a workload that does not drain. Its end may be before its begin.

    A Job's pod works from its start to its end. A machine that hangs, or that is cut off from the control plane, takes
    nothing away: only its kubelet is hit, and clients reach its pods as before.
    """
    ended = math.inf if life.ended is None else life.ended
    if workload.kind is ScenarioWorkloadKind.JOB:
        return TimeSpan(life.began, ended)
    if life.term is not None and not workload.drains:
        ended = min(ended, life.term)
    return TimeSpan(life.began + workload.ready, ended)


def pod_serving_spans(lives: Iterable[ContainerLife], workload: ScenarioWorkload) -> Mapping[str, Sequence[TimeSpan]]:
    """When each pod (by its uid) serves: while all of its containers do."""
    found: dict[str, dict[str, list[TimeSpan]]] = {}
    for life in lives:
        found.setdefault(life.uid, {}).setdefault(life.container, []).append(serving_span(life, workload))
    return {uid: _common_spans(list(containers.values())) for uid, containers in found.items()}


def _common_spans(containers: Sequence[Sequence[TimeSpan]]) -> Sequence[TimeSpan]:
    both = containers[0]
    for spans in containers[1:]:
        overlaps = (TimeSpan(max(a.begin, b.begin), min(a.end, b.end)) for a in both for b in spans)
        both = join_spans(sorted(overlaps))
    return both


def has_missed_hook(life: ContainerLife, workload: ScenarioWorkload) -> bool:
    """Whether it was ended before its preStop hook had run to its end. One that ends by itself misses none."""
    signals = [at for at in (life.term, life.kill, life.ended if life.cut else None) if at is not None]
    takes = _hook_seconds(life, workload)
    if not takes or not signals:
        return False
    at = min(signals)
    return not any(len(hook) == 2 and hook[1] <= at and _is_hook_complete(hook, takes) for hook in life.hooks)


def _hook_seconds(life: ContainerLife, workload: ScenarioWorkload) -> float:
    return workload.hooks.get(life.container, 0.0) if workload.hooks else workload.pre_stop


def _is_hook_complete(hook: list[float], takes: float) -> bool:
    return hook[1] - hook[0] > takes - 1e-6
