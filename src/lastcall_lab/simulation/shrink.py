"""Shrinks a scenario to the shortest one that still shows a violation, with default values where possible.

Which candidates are tried, and in which order, follows from the scenario and the answers alone; only the bound of time
depends on the machine.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import asdict, replace

from lastcall.errors import InvalidInput, LastcallError
from lastcall.ports.node import Clock
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario import NodeGroup, Scenario, ScenarioEvent, ScenarioWorkload, Verb
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.writer import write_scenario

MOST_RUNS = 400
MOST_SECONDS = 180.0
"""Bounds of one search."""

T = TypeVar("T")
Shows = Callable[[Scenario], float | None]
"""When a scenario shows what is looked for, in seconds from its time 0; None if it does not."""


def violation_finder(rule: str, seed: int) -> Shows:
    """Whether a promise (``invariants.Rule``, by its words) is broken with that seed.

    A scenario that does not come up, or that the API server refuses, shows nothing.
    """

    def when(scenario: Scenario) -> float | None:
        try:
            outcome = run_rehearsal(scenario, seed)
        except LastcallError:
            return None
        return next((one.at for one in outcome.violations if one.rule == rule), None)

    return when


def sole_violation_check(rule: str, seed: int) -> Callable[[Scenario], bool]:
    """Whether a scenario breaks that promise with that seed, and no other one."""

    def check(scenario: Scenario) -> bool:
        try:
            return {one.rule for one in run_rehearsal(scenario, seed).violations} == {rule}
        except LastcallError:
            return False

    return check


def shrink_scenario(
    scenario: Scenario,
    when: Shows,
    *,
    clock: Clock,
    most: int = MOST_RUNS,
    seconds: float = MOST_SECONDS,
    clear: Callable[[Scenario], bool] = lambda _: False,
) -> Scenario:
    """The shortest that has been found with ``most`` runs in about as many ``seconds``; it is as YAML gives it.

    What an early end leaves unfinished is no finding: it lasts until it is ``clear``, or as long as it did.
    LastcallError if the scenario does not show it, or does not when it is written as YAML and read again.
    """
    end = clock.boottime() + seconds
    search = _ShrinkSearch(when, most, lambda: clock.boottime() > end)
    if not search.try_candidate(scenario):
        raise LastcallError(f"{scenario.name}: nothing is broken by it that could be made shorter")
    before = None
    while before != search.best:
        before = search.best
        for way in (
            _reset_to_defaults,
            _shorten_time,
            _drop_items,
            _simplify_workloads,
            _simplify_events,
            _drop_machines,
        ):
            way(search)
    ends = (math.ceil((search.at + more) / 60) * 60.0 for more in (60.0, 240.0))
    longer = (replace(search.best, lasts=lasts) for lasts in ends if lasts < scenario.lasts)
    if found := next((one for one in longer if clear(one)), None):
        return found
    search.try_candidate(replace(search.best, lasts=scenario.lasts))
    return search.best


class _ShrinkSearch:
    """``best`` is the shortest so far, and ``at`` when it shows what is looked for."""

    def __init__(self, when: Shows, most: int, over: Callable[[], bool]) -> None:
        self.best = Scenario(name="")
        self.at = 0.0
        self._when = when
        self._left = most
        self._over = over
        self._tried: set[str] = set()

    def try_candidate(self, candidate: Scenario) -> bool:
        """Takes it if it still shows that. What reading refuses does not."""
        text = write_scenario(candidate)
        if text in self._tried or not self._left or self._over():
            return False
        self._tried.add(text)
        try:
            again = read_scenario(text.encode(), candidate.name)
        except InvalidInput:
            return False
        self._left -= 1
        at = self._when(again)
        if at is None:
            return False
        self.best, self.at = again, at
        return True

    def try_candidates(self, candidates: Iterable[Scenario]) -> bool:
        """Takes the first that still shows it."""
        return any(self.try_candidate(one) for one in candidates)


def minimal_subset(items: Sequence[T], enough: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """The items without those that are not needed: none at first, then without halves, quarters and single ones."""
    if not items or enough(()):
        return ()
    size = (len(items) + 1) // 2
    while size:
        at = 0
        while at < len(items):
            rest = [*items[:at], *items[at + size :]]
            if rest and enough(rest):
                items = rest
            else:
                at += size
        size //= 2
    return items


def _reset_to_defaults(search: _ShrinkSearch) -> None:
    """What promises do not need: expectations, words, and settings that are not the usual ones."""
    usual = Scenario(name="")
    for change in (
        {"expect": (), "description": ""},
        {
            "agent": read_scenario(
                write_scenario(replace(usual, name="usual")).replace("agent: {}\n", "").encode(), ""
            ).agent
        },
        {"boot": usual.boot, "propagation": usual.propagation},
    ):
        search.try_candidate(replace(search.best, **change))


def _shorten_time(search: _ShrinkSearch) -> None:
    """It begins 10 s before its first event, and ends when it has shown it."""
    events = search.best.timeline
    if events and (early := math.floor(events[0].at) - 10) > 0:
        moved = tuple(replace(one, at=round(one.at - early, 9)) for one in events)
        search.try_candidate(replace(search.best, timeline=moved, lasts=search.best.lasts - early))
    end = max(1.0, math.floor(search.at) + 1.0)
    if end < search.best.lasts:
        kept = tuple(one for one in search.best.timeline if one.at < end)
        search.try_candidate(replace(search.best, lasts=end, timeline=kept))


def _drop_items(search: _ShrinkSearch) -> None:
    """Events, workloads and further objects that are not needed."""
    best = search.best
    minimal_subset(best.timeline, lambda some: search.try_candidate(replace(search.best, timeline=tuple(some))))
    minimal_subset(best.workloads, lambda some: search.try_candidate(replace(search.best, workloads=tuple(some))))
    minimal_subset(best.objects, lambda some: search.try_candidate(replace(search.best, objects=tuple(some))))


def _simplify_workloads(search: _ShrinkSearch) -> None:
    """All that is usual at once, or field by field."""
    for index in range(len(search.best.workloads)):
        search.try_candidates(
            replace(search.best, workloads=_replace_item(search.best.workloads, index, one))
            for one in _simpler_workloads(search.best.workloads[index])
        )


def _simpler_workloads(workload: ScenarioWorkload) -> Iterator[ScenarioWorkload]:
    usual = ScenarioWorkload(kind=workload.kind, name=workload.name)
    yield usual
    own = [name for name, value in asdict(workload).items() if value != getattr(usual, name)]
    yield from (replace(workload, **{name: getattr(usual, name)}) for name in own)
    if workload.replicas > 1:
        yield replace(workload, replicas=workload.replicas - 1)


def _simplify_events(search: _ShrinkSearch) -> None:
    """Round times, and death at once."""
    for index in range(len(search.best.timeline)):
        search.try_candidates(
            replace(
                search.best, timeline=tuple(sorted(_replace_item(search.best.timeline, index, one), key=lambda e: e.at))
            )
            for one in _simpler_events(search.best.timeline[index])
        )


def _simpler_events(event: ScenarioEvent) -> Iterator[ScenarioEvent]:
    if event.verb is Verb.KILL_AGENT and event.amount:
        yield replace(event, amount=0.0)
    for unit in (10.0, 1.0, 0.1):
        if (at := round(round(event.at / unit) * unit, 9)) != event.at:
            yield replace(event, at=at)


def _drop_machines(search: _ShrinkSearch) -> None:
    """The last one of a group goes; what happens to it happens to the first to which nothing happens."""
    for index, group in enumerate(search.best.nodes):
        if group.count > 1:
            smaller = _replace_item(search.best.nodes, index, replace(group, count=group.count - 1))
            search.try_candidate(
                replace(search.best, nodes=smaller, timeline=_retarget_events(search.best.timeline, group))
            )


def _retarget_events(events: Sequence[ScenarioEvent], group: NodeGroup) -> tuple[ScenarioEvent, ...]:
    named = {name for one in events for name in one.nodes}
    last = f"{group.name}-{group.count}"
    free = (f"{group.name}-{number + 1}" for number in range(group.count))
    other = next((name for name in free if name not in named), last)
    return tuple(replace(one, nodes=tuple(other if name == last else name for name in one.nodes)) for one in events)


def _replace_item(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
