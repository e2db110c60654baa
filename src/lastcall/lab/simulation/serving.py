"""When a pod of a workload really serves, from what reached its container (pure)."""

import math

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.scenario import Kind, Workload
from lastcall.lab.simulation.spans import Between


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


def hook_missed(life: Life, workload: Workload) -> bool:
    """Whether it was ended before its preStop hook had run to its end. One that ends by itself misses none."""
    signals = [at for at in (life.term, life.kill, life.ended if life.cut else None) if at is not None]
    if not workload.pre_stop or not signals:
        return False
    at = min(signals)
    return not any(len(hook) == 2 and hook[1] <= at and _whole(hook, workload) for hook in life.hooks)


def _whole(hook: list[float], workload: Workload) -> bool:
    return hook[1] - hook[0] > workload.pre_stop - 1e-6
