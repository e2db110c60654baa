"""What would hold up or spoil a shutdown of this node now: a drill's facts in, checks out (pure)."""

from collections.abc import Callable, Sequence

from lastcall.doctor import host_checks, identity_checks, logind_checks, pod_checks
from lastcall.doctor.drill_facts import DrillFacts, DrillVolume, TrafficFacts
from lastcall.doctor.facts import HostFacts, UnknownFact
from lastcall.doctor.finding import Check, Finding, failure, ok, unknown, warning
from lastcall.model.duration import format_seconds
from lastcall.model.shutdown import PhaseRecord
from lastcall.names import KUBELET_LOCK_WHO

OF_THE_HOST: dict[str, Callable[[HostFacts], Finding]] = {
    "agent": logind_checks.check_agent,
    "configuration": logind_checks.check_configuration,
    "delay-limit": logind_checks.check_delay_limit,
    "other-locks": logind_checks.check_other_locks,
    "runtime": host_checks.check_runtime,
    "priorities": pod_checks.check_priorities,
    "identities": identity_checks.check_identities,
}
"""The checks of doctor that a drill makes, too."""

_NAMED = 5


def run_drill_checks(facts: DrillFacts) -> list[Check]:
    """All checks, in output order."""
    found = {name: check(facts.host) for name, check in OF_THE_HOST.items()}
    found |= {name: check(facts) for name, check in OF_THE_SHUTDOWN.items()}
    return [Check(name=name, verdict=one.verdict, message=one.message, fix=one.fix) for name, one in found.items()]


def check_kubelet_unit(facts: DrillFacts) -> Finding:
    """Whether the kubelet would be stopped, and leaves the shutdown to the agent."""
    logind, unit = facts.host.logind, facts.kubelet_unit
    if not isinstance(logind, UnknownFact) and logind_checks.find_lock(KUBELET_LOCK_WHO, logind):
        return failure(
            "the kubelet holds a delay lock: it ends the pods, too, in its own order",
            "take shutdownGracePeriod and its like out of the kubelet's configuration, and restart it",
        )
    if unit is None:
        return warning("no unit is stopped: a running kubelet starts again what is ended", "name it by --kubelet-unit")
    if isinstance(unit, UnknownFact):
        return unknown(f"whether it can be stopped is not known: {unit.reason}")
    if unit.load == "not-found":
        return warning(
            f"there is no {unit.name}: a kubelet of another name starts again what is ended",
            "name it by --kubelet-unit, if it has a unit of its own",
        )
    if unit.active in ("inactive", "failed"):
        return warning(f"{unit.name} does not run: there is nothing to stop", "is this the unit of the kubelet?")
    if not unit.can_stop:
        return failure(f"{unit.name} refuses to be stopped by request", "remove RefuseManualStop= from the unit")
    return ok(f"{unit.name} runs, and would be stopped")


def check_time(facts: DrillFacts) -> Finding:
    """Which pods would get less time than they ask for, so that they may be killed."""
    short = sorted(f"{pod.namespace}/{pod.name}" for pod in facts.record.pods if pod.asked - pod.grace >= 1)
    total = len(facts.record.pods)
    if not short:
        return ok(f"all {total} pods get the time that they ask for" if total else "no pods run here")
    return warning(
        f"{len(short)} of {total} pods get less time than they ask for, and may be killed: {_names(short)}",
        "give their phases more seconds, and see the line delay-limit",
    )


def check_traffic(facts: DrillFacts) -> Finding:
    """What the wait for Services costs."""
    traffic, pods = facts.traffic, facts.record.pods
    if isinstance(traffic, UnknownFact):
        return unknown(f"which pods Services send traffic to is not known, so no SIGTERM would wait: {traffic.reason}")
    serving = [pod for pod in pods if pod.uid in traffic.serving]
    if not traffic.limit_seconds:
        return warning("no SIGTERM waits for Services (traffic.limitSeconds is 0)", "set traffic.limitSeconds")
    if not serving:
        return ok("no pod receives traffic from a Service, so no SIGTERM waits")
    phases = sorted({pod.phase for pod in serving})
    costs = [f"{_cost(facts.record.phases[index], traffic)} in phase {index + 1}" for index in phases]
    return ok(
        f"{len(serving)} of {len(pods)} pods receive traffic from Services: their SIGTERM waits until the EndpointSlices"
        f" are without them, and {format_seconds(traffic.settle_seconds)} more ({traffic.source}); at most"
        f" {', '.join(costs)}"
    )


def _cost(phase: PhaseRecord, traffic: TrafficFacts) -> str:
    """The longest wait in a phase: the limit, or a quarter of the phase (``graceful.cluster.traffic_wait``)."""
    seconds = phase.seconds if phase.given is None else phase.given
    return format_seconds(min(traffic.limit_seconds, seconds / 4))


def check_volumes(facts: DrillFacts) -> Finding:
    """Which volumes would stay mounted, and so hold up the pods that need them elsewhere."""
    volumes = facts.volumes
    if isinstance(volumes, UnknownFact):
        return unknown(f"which volumes are mounted is not known: {volumes.reason}")
    held = [one for one in volumes if one.problem]
    if held:
        return warning(
            f"{len(held)} of {len(volumes)} volumes would stay mounted: {_volume_list(held)}",
            "a CSI driver has to run until its users have ended; other volumes need a drain before the shutdown",
        )
    if not volumes:
        return ok("no pod that is replaced elsewhere has a volume that has to be unmounted")
    return ok(f"the drivers of all {len(volumes)} volumes that have to be unmounted answer")


OF_THE_SHUTDOWN: dict[str, Callable[[DrillFacts], Finding]] = {
    "kubelet": check_kubelet_unit,
    "time": check_time,
    "traffic": check_traffic,
    "volumes": check_volumes,
}
"""The checks that need the rehearsed shutdown, or what it would do."""


def _volume_list(volumes: Sequence[DrillVolume]) -> str:
    return _names([f"{one.title} of {one.pod}: {one.problem}" for one in volumes], "; ")


def _names(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return between.join(names[:_NAMED]) + more
