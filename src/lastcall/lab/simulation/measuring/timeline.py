"""What has happened in a rehearsal, line by line, in words (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.outcome import Breach, Line, Topic
from lastcall.lab.simulation.scenario import Event
from lastcall.lab.simulation.spans import Between
from lastcall.lab.simulation.truth import Notice, Power
from lastcall.lab.simulation.wording.sentences import of_event
from lastcall.report.words import some

_ORDER = list(Topic)


class _One(NamedTuple):
    at: float
    what: str
    who: str
    node: str


def timeline(
    events: Iterable[Event],
    powers: Iterable[Power],
    lives: Iterable[tuple[str, Sequence[Life]]],
    breaches: Iterable[Breach],
    within: Between,
    *,
    notices: Iterable[Notice] = (),
) -> tuple[Line, ...]:
    """Lines in order. ``lives`` are those of each workload, by its name; alike things of one second are one line."""
    pods = (one for name, found in lives for life in found for one in _of_life(life, name))
    machines = [_One(one.at, _power(one), "", one.node) for one in powers]
    machines += [_One(one.at, f"{one.what}: {{}}", "", one.node) for one in notices]
    found = [
        *(Line(at=event.at, topic=Topic.EVENT, text=of_event(event)) for event in events),
        *_grouped(machines, Topic.MACHINE, within),
        *_grouped(pods, Topic.PODS, within),
        *(Line(at=one.at, topic=Topic.VIOLATION, text=f"{one.rule}: {one.what}") for one in breaches),
    ]
    return tuple(sorted(found, key=lambda line: (line.at, _ORDER.index(line.topic))))


def _of_life(life: Life, workload: str) -> Iterator[_One]:
    yield _One(life.began, "start", workload, life.node)
    if life.ended is not None:
        what = "cut" if life.cut else "end" if life.kill is None else "kill"
        yield _One(life.ended, what, workload, life.node)


def _grouped(ones: Iterable[_One], topic: Topic, within: Between) -> Iterator[Line]:
    """By second, and what has happened to whom."""
    groups: dict[tuple[int, str, str], list[_One]] = {}
    for one in sorted(ones, key=lambda one: one.at):
        if within.begin <= one.at <= within.end:
            groups.setdefault((int(one.at - within.begin), one.what, one.who), []).append(one)
    for (_, what, who), found in groups.items():
        nodes = some(sorted({one.node for one in found}))
        text = _pods(what, who, len(found), nodes) if who else what.format(nodes)
        yield Line(at=round(found[0].at - within.begin, 3), topic=topic, text=text)


_PODS = {
    "start": ("starts", "start"),
    "end": ("ends", "end"),
    "kill": ("is killed", "are killed"),
    "cut": ("loses its power", "lose their power"),
}


def _pods(what: str, who: str, count: int, nodes: str) -> str:
    verb = _PODS[what][count > 1]
    return f"{count} {'pods' if count > 1 else 'pod'} of {who} {verb} on {nodes}"


_POWERS = {
    "on": "power on: {}",
    "off": "power off: {}",
    "pressed without a lock": "a shutdown begins without a lock: {}",
    "cancelled": "the shutdown is called off: {}",
    "agent killed": "kubelet and agent are dead: {}",
    "agent started": "kubelet and agent start: {}",
    "holder killed": "the holder of the lock is dead: {}",
    "logind restarted": "logind begins anew: {}",
    "no bus": "D-Bus is lost: {}",
    "no bus over": "D-Bus is back: {}",
    "no runtime": "the runtime does not answer: {}",
    "no runtime over": "the runtime answers again: {}",
    "disk full": "the disk is full: {}",
    "disk full over": "the disk has room again: {}",
    "down": "nothing holds up the shutdown any more: {}",
    "hang": "the kubelet hangs: {}",
    "partition": "cut off from the control plane: {}",
    "storage": "cut off from the storage: {}",
    "mended": "no fault any more: {}",
}


def _power(one: Power) -> str:
    if one.what == "pressed":
        return f"a shutdown begins, {one.amount:g} s are granted: {{}}"
    return _POWERS[one.what]
