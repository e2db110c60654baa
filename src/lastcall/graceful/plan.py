"""What a shutdown would do to a set of pods: the document that ``lastcall plan`` prints.

The document's shape is a contract: fields are added, never changed or taken away.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

from lastcall.graceful import budget, notes, phases
from lastcall.graceful.config import AgentConfig
from lastcall.model import duration
from lastcall.model.base import Facts
from lastcall.model.pods import Pod, priority
from lastcall.model.shutdown import Mode, PhasePlan

_NAMED = 5


class PlannedPod(Facts, frozen=True):
    """A pod, the seconds that it gets, and those of its phase."""

    pod: Pod
    seconds: int
    phase: int

    @property
    def notes(self) -> list[str]:
        """What a person should know about its end."""
        return notes.about(self.pod, self.seconds, phase=self.phase)


class PlannedPhase(Facts, frozen=True):
    """A phase with its pods. ``start`` is when it begins at the latest, in seconds since the shutdown began."""

    priority: int
    seconds: int
    start: int
    pods: tuple[PlannedPod, ...]


class Plan(Facts, frozen=True):
    """All phases in their order, those without pods too; none if graceful shutdown is disabled."""

    enabled: bool
    phases: tuple[PlannedPhase, ...]
    warnings: tuple[str, ...]

    @property
    def total_seconds(self) -> int:
        """How long the phases take at the most."""
        return sum(phase.seconds for phase in self.phases)


def build(config: AgentConfig, pods: Sequence[Pod], *, node: str | None = None, granted: float = float("inf")) -> Plan:
    """The plan for the pods that are scheduled on ``node``, or on any node as if it were one.

    ``granted`` is how many seconds logind would wait.
    """
    if not config.enabled:
        return Plan(enabled=False, phases=(), warnings=config.warnings)
    groups = budget.fit(config.groups, granted)
    here = [pod for pod in pods if pod.spec.node_name and node in (None, pod.spec.node_name)]
    return Plan(
        enabled=True,
        phases=tuple(_phases(groups, here)),
        warnings=(*config.warnings, *_about_time(config, granted), *_about_nodes(pods, node)),
    )


def to_json(plan: Plan, warnings: Iterable[str] = ()) -> bytes:
    """The plan as its JSON document; ``warnings`` of others go behind its own."""
    document = {
        "enabled": plan.enabled,
        "totalSeconds": plan.total_seconds,
        "phases": [
            {"priority": phase.priority, "seconds": phase.seconds, "pods": [_pod(planned) for planned in phase.pods]}
            for phase in plan.phases
        ],
        "warnings": [*plan.warnings, *warnings],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _phases(groups: Sequence[PhasePlan], pods: Sequence[Pod]) -> Iterator[PlannedPhase]:
    starts = accumulate((group.seconds for group in groups), initial=0)
    for group, start, members in zip(groups, starts, phases.assign(groups, pods), strict=False):
        planned = tuple(
            PlannedPod(pod=pod, seconds=phases.grace(pod, group.seconds), phase=group.seconds) for pod in members
        )
        yield PlannedPhase(priority=group.priority, seconds=group.seconds, start=start, pods=planned)


def _pod(planned: PlannedPod) -> dict[str, object]:
    return {
        "namespace": planned.pod.metadata.namespace,
        "name": planned.pod.metadata.name,
        "priority": priority(planned.pod),
        "gracePeriodSeconds": planned.seconds,
        "notes": planned.notes,
    }


def _about_time(config: AgentConfig, granted: float) -> Iterator[str]:
    if config.mode is Mode.OBSERVE:
        yield "mode Observe: the agent ends nothing; this is what Enforce would do"
    asked = config.requested_seconds
    if granted < asked:
        yield (
            f"logind grants {duration.of_seconds(granted)} of the {duration.of_seconds(asked)} asked for: critical "
            "phases keep their seconds as far as they fit, the others are cut pro rata"
        )


def _about_nodes(pods: Sequence[Pod], node: str | None) -> Iterator[str]:
    unfinished = [pod for pod in pods if not pod.finished]
    nodes = sorted({pod.spec.node_name for pod in unfinished} - {""})
    homeless = sorted(pod.key for pod in unfinished if not pod.spec.node_name)
    if node is not None and node not in nodes:
        yield f"no unfinished pod is on node {node}; there are pods on: {_some(nodes) or 'no node'}"
    if node is None and len(nodes) > 1:
        yield f"the pods of {len(nodes)} nodes count as one node's: {_some(nodes)}; --node chooses one"
    if node is None and homeless:
        yield f"in no phase, since spec.nodeName says no node: {_some(homeless)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
