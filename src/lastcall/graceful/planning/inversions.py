"""Pods that end before the pods that need them, and what would mend it (pure).

A network plugin or DNS in the phase of its users is no inversion: it waits for them (``service_order``). A CSI driver in
the phase of its users receives SIGTERM when their volumes are unmounted, but two seconds before its own SIGKILL at the
latest: it is one if a user may take longer than that.
"""

from collections.abc import Iterator, Sequence

from lastcall.graceful.config import AgentConfig
from lastcall.graceful.planning import phase_assignment
from lastcall.graceful.planning.node_services import NodeService, ServiceKind, find_services, is_user
from lastcall.graceful.planning.shutdown_plan import PlannedPod, ShutdownPlan
from lastcall.model.base import Facts
from lastcall.model.node_pods import NodePods, PriorityClass
from lastcall.model.pods import SYSTEM_CLASSES, Pod, pod_priority
from lastcall.model.shutdown import PhasePlan

_KEPT_FOR_SIGTERM = 2
"""Seconds between a driver's SIGTERM and its SIGKILL (design/volumes.md)."""

_SERVICE_SECONDS = 10
"""Seconds at most that a new phase takes from the one that it is cut out of."""

_NAMED = 3

_STANDARD_CLASS = {
    ServiceKind.CSI: "system-node-critical",
    ServiceKind.CNI: "system-node-critical",
    ServiceKind.DNS: "system-cluster-critical",
}

_WHY = {
    ServiceKind.CSI: "its volumes cannot be unmounted then",
    ServiceKind.CNI: "it loses its network before it ends",
    ServiceKind.DNS: "it may resolve no names while it ends",
}


class Mend(Facts, frozen=True):
    """What puts a pod behind its users: a class for it, entries for the configuration, or both.

    ``periods`` replace all phases and last as long. ``lowers_users``: there is no place behind the users, so that these
    need a lower priority; the other fields are empty then.
    """

    priority_class: str = ""
    periods: tuple[PhasePlan, ...] = ()
    lowers_users: bool = False


class Inversion(Facts, frozen=True):
    """A pod that ends before pods that need it; phases are counted from 0."""

    service: NodeService
    phase: int
    users: tuple[Pod, ...]
    user_phase: int
    mend: Mend


def find_inversions(config: AgentConfig, plan: ShutdownPlan, node: NodePods) -> tuple[Inversion, ...]:
    """The inversions of ``plan``, which is that of ``node`` by ``config``, in the order of the node's pods."""
    placed = {one.pod.key: (at, one) for at, phase in enumerate(plan.phases) for one in phase.pods}
    services = [one for one in find_services(node) if one.pod.key in placed]
    return tuple(found for one in services if (found := _inversion(one, placed, config, node)))


def inversion_text(inversion: Inversion) -> str:
    """The inversion and its mend, as a sentence for people."""
    service, users = inversion.service, inversion.users
    names = ", ".join(one.key for one in users[:_NAMED])
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    what = {ServiceKind.CSI: "CSI driver", ServiceKind.CNI: "network plugin", ServiceKind.DNS: "DNS"}[service.kind]
    title = " ".join((what, *service.drivers))
    when = "the same phase" if inversion.phase == inversion.user_phase else f"phase {inversion.user_phase + 1}"
    return (
        f"{service.pod.key} ({title}) ends in phase {inversion.phase + 1}, before {names}{more} may have ended in {when}"
        f" ({_WHY[service.kind]}): {_mend_text(inversion)}"
    )


def inversion_document(inversion: Inversion) -> dict[str, object]:
    """The inversion as JSON has it; phases are indexes into the plan's."""
    pod, mend = inversion.service.pod, inversion.mend
    return {
        "kind": inversion.service.kind.value,
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "phase": inversion.phase,
        "users": [{"namespace": one.metadata.namespace, "name": one.metadata.name} for one in inversion.users],
        "mend": {
            "priorityClassName": mend.priority_class or None,
            "shutdownGracePeriodByPodPriority": [
                {"priority": one.priority, "shutdownGracePeriodSeconds": one.seconds} for one in mend.periods
            ]
            or None,
            "lowerUsers": mend.lowers_users,
        },
        "message": inversion_text(inversion),
    }


def _inversion(
    service: NodeService, placed: dict[str, tuple[int, PlannedPod]], config: AgentConfig, node: NodePods
) -> Inversion | None:
    at, own = placed[service.pod.key]
    late = {
        key: (then, one.pod)
        for key, (then, one) in placed.items()
        if _outlasts(service, at, own, then, one) and is_user(service, one.pod, node)
    }
    if not late:
        return None
    users = tuple(pod for _, pod in sorted(late.values(), key=lambda one: (-one[0], one[1].key)))
    last = max(then for then, _ in late.values())
    mend = _find_mend(service, config.groups, last, max(map(pod_priority, users)), node.classes)
    return Inversion(service=service, phase=at, users=users, user_phase=last, mend=mend)


def _outlasts(service: NodeService, at: int, own: PlannedPod, then: int, user: PlannedPod) -> bool:
    together = service.kind is ServiceKind.CSI and then == at and user.seconds > own.seconds - _KEPT_FOR_SIGTERM
    return then > at or together


def _find_mend(
    service: NodeService,
    groups: Sequence[PhasePlan],
    last: int,
    above: int,
    classes: Sequence[PriorityClass],
) -> Mend:
    """Prefers an existing later phase to a new one, and the standard class of the kind to others."""
    standard = _STANDARD_CLASS[service.kind]
    known = {**SYSTEM_CLASSES, **{one.name: one.value for one in classes}}
    ordered = sorted(known.items(), key=lambda one: (one[0] != standard, one[1], one[0]))
    for name, value in ordered:
        if phase_assignment.index_for(groups, value) > last:
            return Mend(priority_class=name)
    if pod_priority(service.pod) > above:
        return _with_new_phase(groups, pod_priority(service.pod), "")
    return next((_with_new_phase(groups, value, name) for name, value in ordered if value > above), _LOWER)


_LOWER = Mend(lowers_users=True)


def _with_new_phase(groups: Sequence[PhasePlan], priority: int, class_name: str) -> Mend:
    """A phase of its own from ``priority`` on, cut out of the phase that has this priority now."""
    at = phase_assignment.index_for(groups, priority)
    seconds = min(_SERVICE_SECONDS, groups[at].seconds // 3)
    if not seconds:
        return _LOWER
    # The lowest phase has pods below its own priority too.
    before = PhasePlan(priority=min(groups[at].priority, priority - 1), seconds=groups[at].seconds - seconds)
    new = PhasePlan(priority=priority, seconds=seconds)
    return Mend(priority_class=class_name, periods=(*groups[:at], before, new, *groups[at + 1 :]))


def _mend_text(inversion: Inversion) -> str:
    return " and ".join(_mend_parts(inversion))


def _mend_parts(inversion: Inversion) -> Iterator[str]:
    mend, service = inversion.mend, inversion.service
    if mend.lowers_users:
        yield f"no phase can follow: give the users a priority below {pod_priority(service.pod)}"
    if mend.priority_class:
        yield f"give {_owner_text(service.pod)} priorityClassName {mend.priority_class}"
    if mend.periods:
        entries = ", ".join(
            f"{{priority: {one.priority}, shutdownGracePeriodSeconds: {one.seconds}}}" for one in mend.periods
        )
        yield f"configure shutdownGracePeriodByPodPriority: [{entries}]"


def _owner_text(pod: Pod) -> str:
    owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
    return f"{owner.kind} {pod.metadata.namespace}/{owner.name}" if owner else f"pod {pod.key}"
