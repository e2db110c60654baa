"""Why a pod is ended, and how much time that leaves it at the least (pure).

The API server's word gives it its grace from the moment it was said, as no kubelet can hear it sooner. A shutdown gives
it its part of its phase, by the clock of the power button: as if all phases after it had pods.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.rules import arithmetic
from lastcall_lab.simulation.rules.arithmetic import AFTER_TERM, LEAST_GRACE
from lastcall_lab.simulation.rules.base import MARGIN, NEVER, SOON
from lastcall_lab.simulation.rules.run_facts import RunFacts, ShutdownHistory, agent_name
from lastcall_lab.simulation.truth import TerminationRequest

FIRST_ANSWERS = 0.3
"""Seconds for which the first SIGTERM waits for the API server at the most, with a margin."""

KUBELET_ENDS = 0.1
"""Seconds that a kubelet takes to end, with a margin: before it an agent beside it deletes no pod."""


@dataclass(frozen=True)
class TerminationReason:
    """From ``at`` on it is to end, by a SIGKILL not before ``polite`` and not after ``last``.

    Between the two a container that got SIGTERM late has two seconds. Its hook has until ``hook``: the two seconds are the
    kubelet's promise, the phase's end is the node's, and so a hook that would fill the phase gives them up, or a half.
    """

    at: float
    hook: float
    polite: float
    last: float

    def earliest_kill(self, term: float | None) -> float:
        """The earliest moment for SIGKILL."""
        return min(max(self.polite, self.polite if term is None else term + AFTER_TERM - SOON), self.last)


class PhaseStart(NamedTuple):
    """When a phase began: not before ``earliest`` and not after ``latest``."""

    earliest: float
    latest: float


class TerminationReasons:
    """Of all that has ended in a run."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._shutdowns: dict[str, list[ShutdownHistory]] = {}
        for one in facts.shutdowns:
            self._shutdowns.setdefault(one.node, []).append(one)
        self._starts = {id(one): self._phase_starts(one) for one in facts.shutdowns}

    def reasons_for(self, life: ContainerLife, at: float) -> Sequence[TerminationReason]:
        """Those that there were at that time."""
        return [*self._api_requests(life, at), *self._shutdown_reasons(life, at)]

    def phase_start(self, shutdown: ShutdownHistory, index: int) -> float | None:
        """When a phase began at the latest, None if no pod of it was begun."""
        found = self._starts[id(shutdown)].get(index)
        return found.latest if found else None

    def phase_end(self, shutdown: ShutdownHistory, index: int, start: float) -> float:
        """Until when a phase that began then goes on at the least, if it is not done before."""
        return start + self._phase_seconds(shutdown, index, start)

    def _api_requests(self, life: ContainerLife, at: float) -> Iterator[TerminationReason]:
        for one in self._facts.asked.get(life.uid, ()):
            if one.at <= at and self._is_heard(life, one, at):
                polite = one.at + max(one.grace, LEAST_GRACE) - SOON
                yield TerminationReason(one.at, polite, polite, NEVER if one.grace else polite)

    def _is_heard(self, life: ContainerLife, asked: TerminationRequest, at: float) -> bool:
        """What the agent itself deletes it ends by its phase's time; another reason is it for a kubelet alone."""
        kubelets = self._facts.machines[life.node].kubelets
        return asked.by != agent_name(life.node) or kubelets.overlaps(asked.at, at)

    def _shutdown_reasons(self, life: ContainerLife, at: float) -> Iterator[TerminationReason]:
        """What was begun before a shutdown was called off goes on."""
        if self._facts.run.plan is None:
            return
        for shutdown in self._shutdowns.get(life.node, ()):
            first = _shutdown_signal_time(life, shutdown)
            if (
                shutdown.at <= at
                and first is not None
                and self._first_step(life, shutdown, first)
                <= min(shutdown.until + SOON, at) + self._notice_delay(shutdown)
            ):
                yield from self._phase_reasons(shutdown, life, first)

    def _notice_delay(self, shutdown: ShutdownHistory) -> float:
        return max(0.0, shutdown.noticed_off - shutdown.until) if shutdown.cancelled else 0.0

    def _phase_reasons(
        self, shutdown: ShutdownHistory, life: ContainerLife, first: float
    ) -> Iterator[TerminationReason]:
        """A pod that is found late ends with a later phase than its own."""
        index = self._facts.phase_of_pod(life.uid)
        yield self._phase_reason(shutdown, life, first, index)
        if life.began > shutdown.at:
            for later, start in self._starts[id(shutdown)].items():
                if later > index and start.latest <= first:
                    yield self._phase_reason(shutdown, life, first, later)

    def _phase_reason(
        self, shutdown: ShutdownHistory, life: ContainerLife, first: float, index: int
    ) -> TerminationReason:
        start = self.phase_start(shutdown, index)
        if start is None and _was_ending(life, shutdown):
            start = shutdown.at
        if shutdown.may_be_stale or start is None:
            return TerminationReason(shutdown.at, shutdown.at, shutdown.at, shutdown.at)
        machine = self._facts.machines[shutdown.node]
        given = self._phase_seconds(shutdown, index, start)
        if machine.is_troubled(shutdown.at, start):
            start = shutdown.at
        began = min(first, life.first_signal_since(0.0) or first)
        if machine.is_troubled(shutdown.at, began):
            began = start
        if self._facts.run.beside:  # the waits for the kubelet and for Services are part of phase and grace period
            earliest = self._earliest_start(shutdown, index, start)
            given = min(self._phase_seconds(shutdown, index, earliest), start + given - earliest)
            start = earliest
            began = max(shutdown.at, began - self._facts.run.traffic - FIRST_ANSWERS)
        end = min(start + max(given, MARGIN), max(self._facts.lock_deadline(shutdown, shutdown.at), start))
        last = end - min(MARGIN, (end - start) / 2) - SOON
        polite = min(began + self._facts.run.grace_seconds(life.uid), start + given) - SOON
        hook = min(polite, last - min(AFTER_TERM, max(0.0, last - began) / 2))
        return TerminationReason(shutdown.at, hook, min(polite, last), last)

    def _phase_seconds(self, shutdown: ShutdownHistory, index: int, start: float) -> float:
        left = self._facts.lock_deadline(shutdown, shutdown.at) - start
        coming = [(phase.priority, float(phase.seconds)) for phase in (self._facts.run.plan or ())[index:]]
        return arithmetic.share_seconds(coming, left)[0]

    def _earliest_start(self, shutdown: ShutdownHistory, index: int, start: float) -> float:
        """Not before the button, and not after ``start``."""
        found = self._starts[id(shutdown)].get(index)
        return max(shutdown.at, min(start, found.earliest)) if found else start

    def _phase_starts(self, shutdown: ShutdownHistory) -> dict[int, PhaseStart]:
        """When each phase began, by its pods' first signals and their deletions by the agent.

        Pods that were to end anyway do not tell.
        """
        found: dict[int, PhaseStart] = {}
        for life in self._facts.lives_on(shutdown.node) if self._facts.run.plan else ():
            begun = min(self._first_steps(life, shutdown), key=lambda step: step.latest, default=None)
            if begun and begun.latest <= shutdown.until and not _was_ending(life, shutdown):
                index = self._facts.phase_of_pod(life.uid)
                other = found.get(index, begun)
                found[index] = PhaseStart(min(begun.earliest, other.earliest), min(begun.latest, other.latest))
        return found

    def _first_steps(self, life: ContainerLife, shutdown: ShutdownHistory) -> Iterator[PhaseStart]:
        """Its first signal and its deletion by the agent, and what each says of the beginning of the phase."""
        signal = life.first_signal_since(shutdown.at)
        if signal is None or life.began > signal:
            return
        yield PhaseStart(signal - self._longest_wait(life, signal), signal)
        for at in self._deletions_by_agent(life, shutdown):
            yield PhaseStart(at - KUBELET_ENDS, at)

    def _first_step(self, life: ContainerLife, shutdown: ShutdownHistory, first: float) -> float:
        """Whatever came first: a pod that waits for its Services has been deleted, and has got no signal yet."""
        return min([first, *self._deletions_by_agent(life, shutdown)])

    def _deletions_by_agent(self, life: ContainerLife, shutdown: ShutdownHistory) -> Iterator[float]:
        by_agent = (one.at for one in self._facts.asked.get(life.uid, ()) if one.by == agent_name(life.node))
        return (at for at in by_agent if max(shutdown.at, life.began) <= at <= shutdown.until)

    def _longest_wait(self, life: ContainerLife, signal: float) -> float:
        """How long after its turn a pod may get its first signal: SIGTERM waits for a first list, or for Services."""
        if not self._facts.run.beside:
            return 0.0
        if signal != life.term:
            return KUBELET_ENDS
        is_named = any(one.who == life.uid and one.what and one.at <= signal for one in self._facts.run.endpoints)
        limit = self._facts.run.traffic
        return max(KUBELET_ENDS, limit if is_named else min(limit, FIRST_ANSWERS))


def _shutdown_signal_time(life: ContainerLife, shutdown: ShutdownHistory) -> float | None:
    """When a shutdown reached it: that it took over the end of one that had got SIGTERM before, nothing shows."""
    first = life.first_signal_since(shutdown.at)
    return shutdown.at if first is not None and _was_ending(life, shutdown) else first


def _was_ending(life: ContainerLife, shutdown: ShutdownHistory) -> bool:
    """Whether it had got SIGTERM before the shutdown: its SIGKILL does not show when its phase began."""
    return life.term is not None and life.term < shutdown.at
