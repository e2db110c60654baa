"""When a pod of a workload really serves, from what reached its container (pure)."""

import math
from collections.abc import Iterable, Mapping, Sequence

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.scenario import Kind, Workload
from lastcall.lab.simulation.spans import Between, joined


def serving(life: Life, workload: Workload) -> Between:
    """From being ready to the end, or to SIGTERM for a workload that does not drain. Its end may be before its begin.

    A Job's pod works from its start to its end. A machine that hangs, or that is cut off from the control plane, takes
    nothing away: only its kubelet is hit, and clients reach its pods as before.
    """
    ended = math.inf if life.ended is None else life.ended
    if workload.kind is Kind.JOB:
        return Between(life.began, ended)
    if life.term is not None and not workload.drains:
        ended = min(ended, life.term)
    return Between(life.began + workload.ready, ended)


def pods_serving(lives: Iterable[Life], workload: Workload) -> Mapping[str, Sequence[Between]]:
    """When each pod (by its uid) serves: while all of its containers do."""
    found: dict[str, dict[str, list[Between]]] = {}
    for life in lives:
        found.setdefault(life.uid, {}).setdefault(life.container, []).append(serving(life, workload))
    return {uid: _all(list(containers.values())) for uid, containers in found.items()}


def _all(containers: Sequence[Sequence[Between]]) -> Sequence[Between]:
    both = containers[0]
    for spans in containers[1:]:
        overlaps = (Between(max(a.begin, b.begin), min(a.end, b.end)) for a in both for b in spans)
        both = joined(sorted(overlaps))
    return both


def hook_missed(life: Life, workload: Workload) -> bool:
    """Whether it was ended before its preStop hook had run to its end. One that ends by itself misses none."""
    signals = [at for at in (life.term, life.kill, life.ended if life.cut else None) if at is not None]
    takes = _takes(life, workload)
    if not takes or not signals:
        return False
    at = min(signals)
    return not any(len(hook) == 2 and hook[1] <= at and _whole(hook, takes) for hook in life.hooks)


def _takes(life: Life, workload: Workload) -> float:
    return workload.hooks.get(life.container, 0.0) if workload.hooks else workload.pre_stop


def _whole(hook: list[float], takes: float) -> bool:
    return hook[1] - hook[0] > takes - 1e-6
