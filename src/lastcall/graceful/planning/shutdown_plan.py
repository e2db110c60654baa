"""What a shutdown would do to a set of pods: the document that ``lastcall plan`` prints.

The document's shape is a contract: fields may be added, never changed or removed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import msgspec

from lastcall.graceful.config import AgentConfig
from lastcall.graceful.planning import phase_assignment, termination_notes, time_budget
from lastcall.model import duration
from lastcall.model.base import Facts
from lastcall.model.pods import Pod, pod_priority
from lastcall.model.shutdown import PhasePlan, ShutdownMode

_NAMED = 5


class PlannedPod(Facts, frozen=True):
    """A pod with its grace period and its phase's duration, both in seconds."""

    pod: Pod
    seconds: int
    phase: int

    @property
    def notes(self) -> list[str]:
        """Notes for people on the pod's termination."""
        return termination_notes.notes_for_pod(self.pod, self.seconds, phase=self.phase)


class PlannedPhase(Facts, frozen=True):
    """A phase with its pods. ``start`` is its latest start, in seconds since the shutdown began."""

    priority: int
    seconds: int
    start: int
    pods: tuple[PlannedPod, ...]


class ShutdownPlan(Facts, frozen=True):
    """All phases in order, empty ones included; none if graceful shutdown is disabled."""

    enabled: bool
    phases: tuple[PlannedPhase, ...]
    warnings: tuple[str, ...]

    @property
    def total_seconds(self) -> int:
        """The longest time that the phases can take together."""
        return sum(phase.seconds for phase in self.phases)


def build_plan(
    config: AgentConfig, pods: Sequence[Pod], *, node: str | None = None, granted: float = float("inf")
) -> ShutdownPlan:
    """The plan for the pods on ``node``; without ``node``, for the pods of all nodes as if they ran on one.

    ``granted`` is the number of seconds that logind would wait.
    """
    if not config.is_enabled:
        return ShutdownPlan(enabled=False, phases=(), warnings=config.warnings)
    groups = time_budget.fit_phases(config.groups, granted)
    here = [pod for pod in pods if pod.spec.node_name and node in (None, pod.spec.node_name)]
    return ShutdownPlan(
        enabled=True,
        phases=tuple(_plan_phases(groups, here)),
        warnings=(*config.warnings, *_time_warnings(config, granted), *_node_warnings(pods, node)),
    )


def to_json(
    plan: ShutdownPlan,
    warnings: Iterable[str] = (),
    *,
    more: Mapping[str, object] | None = None,
    sources: Mapping[str, str] | None = None,
) -> bytes:
    """The plan as a JSON document; the caller's ``warnings`` follow the plan's own, and ``more`` are further fields.

    ``sources`` has by pod where its priority is known from, if the plan is that of a living node.
    """
    document: dict[str, object] = {
        "enabled": plan.enabled,
        "totalSeconds": plan.total_seconds,
        "phases": [
            {
                "priority": phase.priority,
                "seconds": phase.seconds,
                "pods": [_pod_document(planned, sources or {}) for planned in phase.pods],
            }
            for phase in plan.phases
        ],
        "warnings": [*plan.warnings, *warnings],
        **(more or {}),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _plan_phases(groups: Sequence[PhasePlan], pods: Sequence[Pod]) -> Iterator[PlannedPhase]:
    starts = accumulate((group.seconds for group in groups), initial=0)
    for group, start, members in zip(groups, starts, phase_assignment.assign_pods(groups, pods), strict=False):
        planned = tuple(
            PlannedPod(pod=pod, seconds=phase_assignment.grace_seconds(pod, group.seconds), phase=group.seconds)
            for pod in members
        )
        yield PlannedPhase(priority=group.priority, seconds=group.seconds, start=start, pods=planned)


def _pod_document(planned: PlannedPod, sources: Mapping[str, str]) -> dict[str, object]:
    source = sources.get(planned.pod.key)
    return {
        "namespace": planned.pod.metadata.namespace,
        "name": planned.pod.metadata.name,
        "priority": pod_priority(planned.pod),
        "gracePeriodSeconds": planned.seconds,
        "notes": planned.notes,
        **({"prioritySource": source} if source else {}),
    }


def _time_warnings(config: AgentConfig, granted: float) -> Iterator[str]:
    if config.mode is ShutdownMode.OBSERVE:
        yield "mode Observe: the agent ends nothing; this is what Enforce would do"
    asked = config.requested_seconds
    if granted < asked:
        yield (
            f"logind grants {duration.format_seconds(granted)} of the {duration.format_seconds(asked)} asked for: critical "
            "phases keep their seconds as far as they fit, the others are cut pro rata"
        )


def _node_warnings(pods: Sequence[Pod], node: str | None) -> Iterator[str]:
    unfinished = [pod for pod in pods if not pod.is_finished]
    nodes = sorted({pod.spec.node_name for pod in unfinished} - {""})
    homeless = sorted(pod.key for pod in unfinished if not pod.spec.node_name)
    if node is not None and node not in nodes:
        yield f"no unfinished pod is on node {node}; there are pods on: {_name_list(nodes) or 'no node'}"
    if node is None and len(nodes) > 1:
        yield f"the pods of {len(nodes)} nodes count as one node's: {_name_list(nodes)}; --node chooses one"
    if node is None and homeless:
        yield f"in no phase, since spec.nodeName says no node: {_name_list(homeless)}"


def _name_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
