"""Figures, targets and the one table."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """What one thing measured several times; seconds unless ``unit`` says otherwise."""

    values: tuple
    unit: str = "ms"

    @property
    def median(self):
        return statistics.median(self.values)

    def __str__(self):
        """The median, and the least and the greatest."""
        low, middle, high = (_number(self, value) for value in (min(self.values), self.median, max(self.values)))
        return f"{middle} {self.unit}" + (f" ({low} to {high})" if len(self.values) > 1 else "")


@dataclass(frozen=True)
class Row:
    """A line of the table. ``limit`` is judged against ``over`` if there is one, else against ``lastcall``."""

    what: str
    pods: int | None
    lastcall: Figures
    floor: Figures | None = None
    over: Figures | None = None
    limit: float | None = None
    kubelet: str = ""

    @property
    def judged(self):
        return self.over or self.lastcall

    @property
    def met(self):
        """None without a target."""
        return None if self.limit is None else self.judged.median <= self.limit

    def cells(self):
        target = "" if self.limit is None else f"{_number(self.judged, self.limit)} {self.judged.unit}"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        pods = "" if self.pods is None else str(self.pods)
        return [self.what, pods, str(self.lastcall), _text(self.floor), _text(self.over), target, verdict, self.kubelet]


HEAD = ["what", "pods", "lastcall", "floor", "over the floor", "at most", "verdict", "a kubelet"]


def pairs(what, pods, lastcall, floor, *, limit_ms=None, limit_percent=None, kubelet=""):
    """A row from measurements that were made in turn: each is judged by the floor that was measured beside it."""
    both = list(zip(lastcall, floor, strict=True))
    if limit_percent is not None:
        over, limit = Figures(tuple(100 * (mine / bare - 1) for mine, bare in both), "%"), limit_percent
    else:
        over, limit = Figures(tuple(mine - bare for mine, bare in both)), limit_ms and limit_ms / 1000
    return Row(what, pods, Figures(tuple(lastcall)), Figures(tuple(floor)), over, limit, kubelet)


def table(rows, head=HEAD):
    """Markdown that reads well without being rendered."""
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(cells, widths) for cells in (lines[0], rule, *lines[1:]))


def _line(cells, widths):
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def _text(figures):
    return "" if figures is None else str(figures)


def _number(figures, value):
    """Milliseconds to two or three digits; the rest as it is."""
    if figures.unit != "ms":
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value * 1000:.1f}" if abs(value) < 0.1 else f"{value * 1000:.0f}"
