"""The table of the failovers: what lastcall and, beside it, the others took in the same run."""

import statistics
from dataclasses import dataclass

from failover_turns import BARE, CONTROLLER, PATIENCE, QUICKER, UPSTREAM
from figures import Figures
from lab import Target, judged

LAB = "lab"
"""The place that is a lab, in the table."""
HEAD = ["what", "by", "lastcall", BARE, UPSTREAM, f"{UPSTREAM}, {QUICKER}", "target", "verdict"]

RATE, LINEAR, MANY = 90, 120, 130
"""Percent: of the bare calls' rate at least; of the time for a pod among few, and of the bare calls' time, at most."""
FIRST = 1.0
"""Seconds at most from the first taint until a pod of hundreds of nodes has gone."""


@dataclass(frozen=True)
class FailoverRow:
    """A line of the table, judged by the median of lastcall's; ``beside``: what the others took, by who."""

    what: str
    by: str
    figures: Figures
    beside: dict | None = None
    target: Target | None = None

    @property
    def met(self):
        """None without a target."""
        return judged(self.target, self.figures)[0]

    def cells(self):
        others = [str((self.beside or {}).get(who, "")) for who in (BARE, UPSTREAM, QUICKER)]
        _, said, verdict = judged(self.target, self.figures)
        return [self.what, self.by, str(self.figures), *others, said, verdict]


def rows(place, found):
    """Of the turns at one place, by case and who."""
    for case, turns in found.items():
        yield from _case(place, case, turns)
    for terminating in (False, True):
        alike = [case for case in found if case.terminating == terminating and not case.among]
        if len(alike) > 1:
            yield _growth(place, found, alike[0], alike[-1])


def _case(place, case, turns):
    mine, bare = turns[CONTROLLER], turns[BARE]

    def row(what, unit, read, target=None):
        cells = {who: _cell(who, case, theirs, unit, read) for who, theirs in turns.items()}
        return FailoverRow(what, place, cells.pop(CONTROLLER), cells, target)

    yield row(f"{case} gone", "s", lambda one: one.pods)
    yield row(f"their {case.attachments} attachments gone", "s", lambda one: one.attachments)
    both = list(zip(mine, bare, strict=True))
    if case.among:
        times = Figures(tuple(100 * one.seconds / other.seconds for one, other in both), "%")
        yield FailoverRow("the time, of the bare calls'", place, times, target=Target(most=MANY))
    else:
        rates = Figures(tuple(100 * other.seconds / one.seconds for one, other in both), "%")
        yield FailoverRow("the rate, of the bare calls'", place, rates, target=Target(least=RATE))
    most = Target(most=FIRST) if case.among else None
    yield row("from the first taint until a pod has gone", "s", lambda one: one.first, most)
    yield row("its CPU", "s", lambda one: one.cpu)
    if mine[0].served is not None:
        yield row("the server's CPU", "s", lambda one: one.served)
    if mine[0].refused is not None:
        yield row("answers 429", "", lambda one: one.refused, Target(most=0))


def _cell(who, case, turns, unit, read):
    """The figures; or how many had gone when that was not awaited any longer."""
    values = tuple(read(one) for one in turns)
    if None not in values:
        return Figures(values, unit)
    return f"{turns[-1].gone} of {case.pods} pods, {turns[-1].detached} of {case.attachments} attachments in {PATIENCE[who]} s"


def _growth(place, found, few, many):
    each = [statistics.median(one.seconds for one in found[case][CONTROLLER]) / case.pods for case in (few, many)]
    what = f"the time for a pod of {many}, of that for one of {few.pods}"
    return FailoverRow(what, place, Figures((100 * each[1] / each[0],), "%"), target=Target(most=LINEAR))
