"""Why a pod is ended, and how much time that leaves it at the least (pure).

The API server's word gives it its grace from the moment it was said, as no kubelet can hear it sooner. A shutdown gives
it its part of its phase, by the clock of the power button: as if all phases after it had pods.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.rules import arithmetic
from lastcall.lab.simulation.rules.arithmetic import AFTER_TERM, LEAST_GRACE
from lastcall.lab.simulation.rules.base import MARGIN, NEVER, SOON
from lastcall.lab.simulation.rules.facts import Facts, Shutdown


@dataclass(frozen=True)
class Reason:
    """From ``at`` on it is to end, by a SIGKILL not before ``polite`` and not after ``last``.

    Between the two a container that got SIGTERM late has two seconds. Its hook has until ``hook``: the two seconds are the
    kubelet's promise, the phase's end is the node's, and so a hook that would fill the phase gives them up, or a half.
    """

    at: float
    hook: float
    polite: float
    last: float

    def kill_at(self, term: float | None) -> float:
        """The earliest moment for SIGKILL."""
        return min(max(self.polite, self.polite if term is None else term + AFTER_TERM - SOON), self.last)


class Reasons:
    """Of all that has ended in a run."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._shutdowns: dict[str, list[Shutdown]] = {}
        for one in facts.shutdowns:
            self._shutdowns.setdefault(one.node, []).append(one)
        self._starts = {id(one): self._phases(one) for one in facts.shutdowns}

    def of(self, life: Life, at: float) -> Sequence[Reason]:
        """Those that there were at that time."""
        return [*self._asked(life, at), *self._shut_down(life, at)]

    def start(self, shutdown: Shutdown, index: int) -> float | None:
        """When a phase began at the latest, None if no pod of it was begun."""
        return self._starts[id(shutdown)].get(index)

    def over(self, shutdown: Shutdown, index: int, start: float) -> float:
        """Until when a phase that began then goes on at the least, if it is not done before."""
        return start + self._given(shutdown, index, start)

    def _asked(self, life: Life, at: float) -> Iterator[Reason]:
        for one in self._facts.asked.get(life.uid, ()):
            if one.at <= at:
                polite = one.at + max(one.grace, LEAST_GRACE) - SOON
                yield Reason(one.at, polite, polite, NEVER if one.grace else polite)

    def _shut_down(self, life: Life, at: float) -> Iterator[Reason]:
        """What was begun before a shutdown was called off goes on."""
        if self._facts.run.plan is None:
            return
        for shutdown in self._shutdowns.get(life.node, ()):
            first = _reached(life, shutdown)
            if (
                shutdown.at <= at
                and first is not None
                and first <= min(shutdown.until + SOON, at) + self._late(shutdown)
            ):
                yield from self._in_phases(shutdown, life, first)

    def _late(self, shutdown: Shutdown) -> float:
        return max(0.0, shutdown.noticed_off - shutdown.until) if shutdown.cancelled else 0.0

    def _in_phases(self, shutdown: Shutdown, life: Life, first: float) -> Iterator[Reason]:
        """A pod that is found late ends with a later phase than its own."""
        index = self._facts.phase(life.uid)
        yield self._time(shutdown, life, first, index)
        if life.began > shutdown.at:
            for later, start in self._starts[id(shutdown)].items():
                if later > index and start <= first:
                    yield self._time(shutdown, life, first, later)

    def _time(self, shutdown: Shutdown, life: Life, first: float, index: int) -> Reason:
        start = self.start(shutdown, index)
        if start is None and _was_ending(life, shutdown):
            start = shutdown.at
        if shutdown.stale or start is None:
            return Reason(shutdown.at, shutdown.at, shutdown.at, shutdown.at)
        machine = self._facts.machines[shutdown.node]
        given = self._given(shutdown, index, start)
        if machine.troubled(shutdown.at, start):
            start = shutdown.at
        began = min(first, life.reached(0.0) or first)
        if machine.troubled(shutdown.at, began):
            began = start
        end = min(start + max(given, MARGIN), max(self._facts.deadline(shutdown, shutdown.at), start))
        last = end - min(MARGIN, (end - start) / 2) - SOON
        polite = min(began + self._facts.run.grace(life.uid), start + given) - SOON
        hook = min(polite, last - min(AFTER_TERM, max(0.0, last - began) / 2))
        return Reason(shutdown.at, hook, min(polite, last), last)

    def _given(self, shutdown: Shutdown, index: int, start: float) -> float:
        left = self._facts.deadline(shutdown, shutdown.at) - start
        coming = [(phase.priority, float(phase.seconds)) for phase in (self._facts.run.plan or ())[index:]]
        return arithmetic.shares(coming, left)[0]

    def _phases(self, shutdown: Shutdown) -> dict[int, float]:
        """When each phase began at the latest; pods that were to end anyway do not tell."""
        found: dict[int, float] = {}
        for life in self._facts.on(shutdown.node) if self._facts.run.plan else ():
            at = life.reached(shutdown.at)
            if at is not None and at <= shutdown.until and life.began <= at and not _was_ending(life, shutdown):
                index = self._facts.phase(life.uid)
                found[index] = min(at, found.get(index, NEVER))
        return found


def _reached(life: Life, shutdown: Shutdown) -> float | None:
    """When a shutdown reached it: that it took over the end of one that had got SIGTERM before, nothing shows."""
    first = life.reached(shutdown.at)
    return shutdown.at if first is not None and _was_ending(life, shutdown) else first


def _was_ending(life: Life, shutdown: Shutdown) -> bool:
    """Whether it had got SIGTERM before the shutdown: its SIGKILL does not show when its phase began."""
    return life.term is not None and life.term < shutdown.at
