"""What follows from a run's truth for all rules: who was dead or away when, and which shutdowns there were (pure).

What is named here excuses: a program that is dead does nothing, and one that cannot ask does not know.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lastcall_lab.simulation.container_lives import ContainerLife, collect_lives
from lastcall_lab.simulation.rules import arithmetic
from lastcall_lab.simulation.rules.base import NEVER, SOON, RunRecord
from lastcall_lab.simulation.time_spans import TimeSpan
from lastcall_lab.simulation.truth import ContainerEvent, MachineEvent, TerminationRequest

FOUND_AGAIN = 2.0
"""Seconds within which an agent has found a bus that is back: it tries every second, and a second is for the rest."""

ARMED_WITHIN = 2.0
"""Seconds within which an agent that lives holds a lock, if logind gives one; also after a shutdown was called off."""


def agent_name(node: str) -> str:
    """The process of the agent that is a program of its own."""
    return f"{node}/agent"


class TroubleSpans(tuple[TimeSpan, ...]):
    """When something was so; both ends belong to a span."""

    __slots__ = ()

    def overlaps(self, begin: float, end: float) -> bool:
        """Whether it was so at any moment between these two."""
        return any(one.begin <= end and one.end >= begin for one in self)

    def last_end(self, begin: float, end: float) -> float:
        """When it was over, of what touches this time; ``begin`` if nothing does."""
        return max((one.end for one in self if one.begin <= end and one.end >= begin), default=begin)


@dataclass(frozen=True, kw_only=True)
class MachineHistory:
    """When its programs were in trouble. ``dead``: no agent ran; ``lost``: the times at which the holder was killed."""

    dead: TroubleSpans
    no_bus: TroubleSpans
    no_runtime: TroubleSpans
    full: TroubleSpans
    lost: Sequence[float]
    cut_off: TroubleSpans
    """It was cut off from the control plane."""
    kubelets: TroubleSpans
    """The lives of a kubelet that is a program of its own."""
    kubelet_deaths: Sequence[float]
    """When it was killed from outside."""

    def is_troubled(self, begin: float, end: float) -> bool:
        """Somebody was dead or away: what began then may have been done later than it began."""
        return self.dead.overlaps(begin, end) or self.no_runtime.overlaps(begin, end)


@dataclass(frozen=True, kw_only=True)
class ShutdownHistory:
    """From the button to power off (``until``), or to the shutdown's being called off; ``down``: logind waits no more.

    ``taken_for``: the shutdown before, if it was called off and nobody can have looked between the two. logind gives
    shutdowns no names: who was dead or cut off all the while goes on with the phases and the deadline of that one, so
    that of times no more can be said than that the lock is held until then.
    """

    at: float
    node: str
    granted: float
    locked: bool
    until: float
    cancelled: bool
    down: float | None
    noticed: float
    """When an agent must have noticed it at the latest."""
    noticed_off: float
    """The same of its being called off; ``NEVER`` if it was not."""
    taken_for: "ShutdownHistory | None" = None

    @property
    def may_be_stale(self) -> bool:
        """Whether it may be taken for the one before."""
        return self.taken_for is not None


class RunFacts:
    """Of one run."""

    def __init__(self, run: RunRecord) -> None:
        self.run = run
        self.lives = collect_lives(run.happenings, run.powers)
        self.powers: dict[str, list[MachineEvent]] = {}
        for one in sorted(run.powers, key=lambda one: one.at):
            self.powers.setdefault(one.node, []).append(one)
        self.machines = {node: _machine_history(powers) for node, powers in self.powers.items()}
        self._on: dict[str, list[ContainerLife]] = {}
        for life in self.lives:
            self._on.setdefault(life.node, []).append(life)
        self.orders: dict[str, list[ContainerEvent]] = {}
        """To start a container, by machine."""
        for happening in run.happenings:
            if happening.what == "order":
                self.orders.setdefault(happening.node, []).append(happening)
        self.asked: dict[str, list[TerminationRequest]] = {}
        for asked in run.asked:
            self.asked.setdefault(asked.uid, []).append(asked)

    @cached_property
    def shutdowns(self) -> Sequence[ShutdownHistory]:
        """In the order of machines and times."""
        return [one for node in self.powers for one in self._node_shutdowns(node)]

    def lives_on(self, node: str) -> Sequence[ContainerLife]:
        """The containers that have lived there."""
        return self._on.get(node, ())

    def requests_of_others(self, life: ContainerLife, shutdown: "ShutdownHistory") -> Iterable[TerminationRequest]:
        """That it is to end, without what the agent itself deletes in this shutdown: so it ends pods in their phases."""
        own = agent_name(life.node)
        return (one for one in self.asked.get(life.uid, ()) if one.by != own or one.at < shutdown.at)

    def phase_of_pod(self, uid: str) -> int:
        """Of a pod."""
        spec = self.run.pods[uid].spec
        priority = arithmetic.pod_priority(spec.priority, spec.priority_class_name)
        return arithmetic.phase_index([phase.priority for phase in self.run.plan or ()], priority)

    def lock_deadline(self, shutdown: ShutdownHistory, seen: float) -> float:
        """Until when the lock is held if the shutdown was seen then."""
        return arithmetic.lock_deadline(seen, self.run.requested_seconds, shutdown.granted)

    def noticed_at(self, machine: MachineHistory, at: float) -> float:
        """When an agent must know what is so since ``at``: when it lives, and has found logind."""
        seen = at
        while seen < NEVER:
            if machine.dead.overlaps(seen, seen):
                seen = machine.dead.last_end(seen, seen) + SOON
            elif machine.no_bus.overlaps(seen - FOUND_AGAIN, seen):
                seen = machine.no_bus.last_end(seen - FOUND_AGAIN, seen) + FOUND_AGAIN + SOON
            else:
                break
        return seen

    def _node_shutdowns(self, node: str) -> Iterable[ShutdownHistory]:
        powers, machine, before = self.powers[node], self.machines[node], None
        for index, one in enumerate(powers):
            if one.what in ("pressed", "pressed without a lock"):
                before = self._shutdown_history(one, powers[index + 1 :], machine, before)
                yield before

    def _shutdown_history(
        self, one: MachineEvent, later: Sequence[MachineEvent], machine: MachineHistory, before: ShutdownHistory | None
    ) -> ShutdownHistory:
        end = next((other for other in later if other.what in ("off", "cancelled")), None)
        until = end.at if end else self.run.end
        cancelled = end is not None and end.what == "cancelled"
        down = next((other.at for other in later if other.what == "down" and other.at <= until), None)
        return ShutdownHistory(
            at=one.at,
            node=one.node,
            granted=one.amount,
            locked=one.what == "pressed",
            until=until,
            cancelled=cancelled,
            down=down,
            noticed=self.noticed_at(machine, one.at),
            noticed_off=self.noticed_at(machine, until) + 1.0 + SOON if cancelled else NEVER,
            taken_for=before if before and before.cancelled and before.noticed_off >= one.at else None,
        )


_ON, _OFF = ("agent started",), ("agent killed", "off")


def _machine_history(powers: Sequence[MachineEvent]) -> MachineHistory:
    return MachineHistory(
        dead=_trouble_spans(powers, _OFF, _ON, begun=True),
        no_bus=_trouble_spans(powers, ("no bus",), ("no bus over", "off")),
        no_runtime=_trouble_spans(powers, ("no runtime",), ("no runtime over",)),
        full=_trouble_spans(powers, ("disk full",), ("disk full over",)),
        lost=[one.at for one in powers if one.what == "holder killed"],
        cut_off=_trouble_spans(powers, ("partition",), ("mended", "off")),
        kubelets=_trouble_spans(powers, ("kubelet started",), ("kubelet stopped", "kubelet killed", "off", "hang")),
        kubelet_deaths=[one.at for one in powers if one.what == "kubelet killed"],
    )


def _trouble_spans(
    powers: Sequence[MachineEvent], begin: Sequence[str], end: Sequence[str], *, begun: bool = False
) -> TroubleSpans:
    since, found = -NEVER if begun else None, []
    for one in powers:
        if one.what in begin and since is None:
            since = one.at
        elif one.what in end and since is not None:
            found.append(TimeSpan(since, one.at))
            since = None
    if since is not None:
        found.append(TimeSpan(since, NEVER))
    return TroubleSpans(found)
