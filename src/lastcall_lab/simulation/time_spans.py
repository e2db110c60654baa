"""Spans of time and curves of whole numbers over it (pure)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple


class TimeSpan(NamedTuple):
    """From ``begin`` to ``end``, which may be infinite."""

    begin: float
    end: float


Curve = Sequence[tuple[float, int]]
"""From each time on the number beside it; in order, no two with the same time, and each number other than the last."""


def count_spans(spans: Iterable[TimeSpan], within: TimeSpan) -> Curve:
    """How many of the spans hold at each moment; what is outside of ``within`` is cut off."""
    changes: list[tuple[float, int]] = []
    for span in spans:
        begin, end = max(span.begin, within.begin), min(span.end, within.end)
        if begin < end:
            changes += [(begin, 1), (end, -1)]
    return _sum_changes(changes, 0, within)


def countdown_curve(start: int, times: Iterable[float], within: TimeSpan) -> Curve:
    """From ``start`` one less at each of the times; one before ``within`` counts at its beginning."""
    return _sum_changes([(max(at, within.begin), -1) for at in times], start, within)


def _sum_changes(changes: Iterable[tuple[float, int]], start: int, within: TimeSpan) -> Curve:
    """What changes at or after the end is left out."""
    found = [(within.begin, start)]
    for at, by in sorted(changes):
        if at >= within.end:
            break
        number = found[-1][1] + by
        if found[-1][0] == at:
            found.pop()
        if not found or found[-1][1] != number:
            found.append((at, number))
    return found


def merge_curves(curves: Sequence[Curve], end: float) -> Iterator[tuple[TimeSpan, tuple[int, ...]]]:
    """Piece by piece the numbers of all curves, which begin at the same time."""
    times = sorted({at for curve in curves for at, _ in curve})
    places = [0] * len(curves)
    for begin, until in zip(times, [*times[1:], end], strict=True):
        for index, curve in enumerate(curves):
            while places[index] + 1 < len(curve) and curve[places[index] + 1][0] <= begin:
                places[index] += 1
        yield TimeSpan(begin, until), tuple(curve[place][1] for curve, place in zip(curves, places, strict=True))


def spans_where(curves: Sequence[Curve], end: float, holds: Callable[..., bool]) -> list[TimeSpan]:
    """The spans in which something holds for the numbers of the curves; those that touch are one."""
    return join_spans(span for span, numbers in merge_curves(curves, end) if holds(*numbers))


def join_spans(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Spans in order, where one begins when the last ends as one; empty ones are left out."""
    found: list[TimeSpan] = []
    for span in spans:
        if span.begin >= span.end:
            continue
        if found and found[-1].end == span.begin:
            found[-1] = TimeSpan(found[-1].begin, span.end)
        else:
            found.append(span)
    return found


def total_length(spans: Iterable[TimeSpan]) -> float:
    """Of all together."""
    return sum((span.end - span.begin for span in spans), 0.0)
