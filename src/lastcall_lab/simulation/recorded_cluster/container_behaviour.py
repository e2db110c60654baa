"""What the containers of a recorded cluster do, from what their pods say and what is assumed (pure)."""

import math
from collections.abc import Mapping

from lastcall.model.pods import Pod
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind

CRASHES = "CrashLoopBackOff"
_CRASH_SECONDS = 1.0

Faults = Mapping[str, Mapping[str, str]]
"""By a pod's uid and a container's name: why it does not run, or is not ready."""

UNREADY = "is not ready"
_NOBODYS = ScenarioWorkload(kind=ScenarioWorkloadKind.POD, name="")


def container_faults(pod: Object) -> dict[str, str]:
    """Of a pod that should run: the containers that fail, as they will go on to do."""
    status = pod.get("status") or {}
    found = {}
    for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = one.get("state") or {}
        reason = (state.get("waiting") or {}).get("reason", "")
        if reason == CRASHES or (reason and (reason.endswith("BackOff") or "Err" in reason)):
            found[one["name"]] = reason
        elif "running" in state and not one.get("ready") and one.get("started", True):
            found[one["name"]] = UNREADY
    return found


def container_behaviour(pod: Pod, name: str, workload: ScenarioWorkload | None, fault: str) -> ContainerScript:
    """Of one run of a container. One that failed when the cluster was recorded goes on failing."""
    known = workload or _NOBODYS
    if any(one.name == name and one.restart_policy != "Always" for one in pod.spec.init_containers or ()):
        return ContainerScript(lives=0.0, broken=fault if fault and fault != CRASHES else "")
    if fault == CRASHES:
        return ContainerScript(lives=_CRASH_SECONDS, code=1)
    return ContainerScript(
        takes=known.starts,
        ready_after=known.ready,
        healthy_for=0.0 if fault == UNREADY else math.inf,
        hook=known.hooks.get(name, 0.0),
        after_term=known.ends,
        broken="" if fault in ("", UNREADY) else fault,
    )
