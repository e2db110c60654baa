"""From PrepareForShutdown to the last pod, beside the floor; the two in turn, since the machine is never the same."""

from figures import Figures, Row, pairs
from nodes import running

KUBELET_POWER_OFF = "780 to 890 ms"
_ENOUGH_FOR_PERCENT = 50
"""With fewer pods a tenth of the floor is less than what a machine's noise makes."""


async def measured(make, count, *, critical=0, floor=False):
    """One measurement on a node of its own."""
    node = make()
    async with running(node, count, critical) as logind:
        return await (node.measure_floor() if floor else node.measure(logind))


async def rows(name, make, count, *, repetitions, tell):
    """The rows for so many pods that end at once."""
    mine, bare = [], []
    for number in range(1, repetitions + 1):
        tell(f"{name}: {count} pods, {number} of {repetitions}")
        bare.append(await measured(make, count, floor=True))
        mine.append(await measured(make, count))
    return list(_compared(name, count, mine, bare))


def _compared(name, count, mine, bare):
    first = [sample.terms[0] for sample in mine], [sample.terms[0] for sample in bare]
    yield pairs(f"{name}: first SIGTERM", count, *first, limit_ms=5)
    if count >= _ENOUGH_FOR_PERCENT:
        limit = 10 if count >= 2 * _ENOUGH_FOR_PERCENT else None
        for what, moment in (
            ("last SIGTERM", lambda sample: sample.terms[-1]),
            ("last container ended", lambda sample: sample.stopped),
            ("last pod gone", lambda sample: sample.finished),
        ):
            judged = None if what == "last container ended" else limit
            values = list(map(moment, mine)), list(map(moment, bare))
            yield pairs(f"{name}: {what}", count, *values, limit_percent=judged)
    to_start = tuple(sample.start_unit - sample.finished for sample in mine)
    yield Row(f"{name}: last pod gone to StartUnit", count, Figures(to_start), limit=0.01)


async def thirteen(name, make, *, repetitions, tell):
    """What was measured on a real kubelet too: ten pods and three critical ones, all of which exit at once."""
    samples = []
    for number in range(1, repetitions + 1):
        tell(f"{name}: 13 pods, {number} of {repetitions}")
        samples.append(await measured(make, 13, critical=3))

    def row(what, moment, kubelet):
        return Row(f"{name}: {what}", 13, Figures(tuple(map(moment, samples))), kubelet=kubelet)

    return [
        row("10 + 3 pods, first SIGTERM", lambda s: s.terms[0], "31 to 36 ms"),
        row("10 + 3 pods, last SIGTERM of the ten", lambda s: s.terms[9], "80 to 124 ms"),
        row("10 + 3 pods, first critical SIGTERM", lambda s: s.critical[0], "640 to 770 ms"),
        row("10 + 3 pods, StartUnit", lambda s: s.start_unit, KUBELET_POWER_OFF),
        row("10 + 3 pods, PowerOff to StartUnit", lambda s: s.start_unit - s.called, ""),
    ]
