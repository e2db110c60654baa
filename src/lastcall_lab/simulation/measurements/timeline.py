"""What has happened in a rehearsal, line by line, in words (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lastcall.report.formatting import abbreviate_names
from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.outcome import ReportedViolation, TimelineLine, TimelineTopic
from lastcall_lab.simulation.scenario import ScenarioEvent
from lastcall_lab.simulation.scenario_text.sentences import event_sentence
from lastcall_lab.simulation.time_spans import TimeSpan
from lastcall_lab.simulation.truth import MachineEvent, NodeNotice

_ORDER = list(TimelineTopic)


class _TimelineFact(NamedTuple):
    at: float
    what: str
    who: str
    node: str


def timeline_lines(
    events: Iterable[ScenarioEvent],
    powers: Iterable[MachineEvent],
    lives: Iterable[tuple[str, Sequence[ContainerLife]]],
    breaches: Iterable[ReportedViolation],
    within: TimeSpan,
    *,
    notices: Iterable[NodeNotice] = (),
) -> tuple[TimelineLine, ...]:
    """Lines in order. ``lives`` are those of each workload, by its name; alike things of one second are one line."""
    pods = (one for name, found in lives for life in found for one in _life_facts(life, name))
    powers = tuple(powers)
    beside = any(one.what == "kubelet started" for one in powers)
    machines = [_TimelineFact(one.at, _machine_text(one, beside=beside), "", one.node) for one in powers]
    machines += [_TimelineFact(one.at, f"{one.what}: {{}}", "", one.node) for one in notices]
    found = [
        *(TimelineLine(at=event.at, topic=TimelineTopic.EVENT, text=event_sentence(event)) for event in events),
        *_group_facts(machines, TimelineTopic.MACHINE, within),
        *_group_facts(pods, TimelineTopic.PODS, within),
        *(TimelineLine(at=one.at, topic=TimelineTopic.VIOLATION, text=f"{one.rule}: {one.what}") for one in breaches),
    ]
    return tuple(sorted(found, key=lambda line: (line.at, _ORDER.index(line.topic))))


def _life_facts(life: ContainerLife, workload: str) -> Iterator[_TimelineFact]:
    yield _TimelineFact(life.began, "start", workload, life.node)
    if life.ended is not None:
        what = "cut" if life.cut else "end" if life.kill is None else "kill"
        yield _TimelineFact(life.ended, what, workload, life.node)


def _group_facts(ones: Iterable[_TimelineFact], topic: TimelineTopic, within: TimeSpan) -> Iterator[TimelineLine]:
    """By second, and what has happened to whom."""
    groups: dict[tuple[int, str, str], list[_TimelineFact]] = {}
    for one in sorted(ones, key=lambda one: one.at):
        if within.begin <= one.at <= within.end:
            groups.setdefault((int(one.at - within.begin), one.what, one.who), []).append(one)
    for (_, what, who), found in groups.items():
        nodes = abbreviate_names(sorted({one.node for one in found}))
        text = _pods_text(what, who, len(found), nodes) if who else what.format(nodes)
        yield TimelineLine(at=round(found[0].at - within.begin, 3), topic=topic, text=text)


_PODS = {
    "start": ("starts", "start"),
    "end": ("ends", "end"),
    "kill": ("is killed", "are killed"),
    "cut": ("loses its power", "lose their power"),
}


def _pods_text(what: str, who: str, count: int, nodes: str) -> str:
    verb = _PODS[what][count > 1]
    return f"{count} {'pods' if count > 1 else 'pod'} of {who} {verb} on {nodes}"


_POWERS = {
    "on": "power on: {}",
    "off": "power off: {}",
    "pressed without a lock": "a shutdown begins without a lock: {}",
    "cancelled": "the shutdown is called off: {}",
    "agent killed": "kubelet and agent are dead: {}",
    "agent started": "kubelet and agent start: {}",
    "kubelet started": "the kubelet starts: {}",
    "kubelet stopped": "the kubelet is stopped: {}",
    "kubelet killed": "the kubelet is dead: {}",
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


_AGENT_ALONE = {"agent killed": "the agent is dead: {}", "agent started": "the agent starts: {}"}
"""Where the kubelet is another process."""


def _machine_text(one: MachineEvent, *, beside: bool) -> str:
    if beside and one.what in _AGENT_ALONE:
        return _AGENT_ALONE[one.what]
    if one.what == "pressed":
        return f"a shutdown begins, {one.amount:g} s are granted: {{}}"
    return _POWERS[one.what]
