"""What the controller's metrics count of its decisions (pure): time in each step, and what has decided a verdict.

Of one controller while it leads: what another one has judged, or begun, is the other's to count.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lastcall.failover.deciding.case import Case
from lastcall.failover.deciding.course import Situation, situation
from lastcall.failover.deciding.steps import Delete, ForceDelete, Step
from lastcall.failover.knowing.proofs import Kind
from lastcall.failover.telling.happenings import Decided, Happening, Rested, Stopped
from lastcall.failover.telling.stages import Stage, silence, stage


@dataclass(frozen=True)
class Ruling:
    """A boot was judged to be over, or, by its ``word``, some of its pods. ``kinds``: what has decided that."""

    boot_id: str
    kinds: frozenset[Kind]
    word: bool = False


def rulings(case: Case, step: Step) -> Iterator[Ruling]:
    """What the decision ``step`` rests on.

    A boot that is marked and makes way for another was over before if it was tainted: the taint is set by proof alone.
    """
    where = situation(case)
    if where is Situation.BOOTED and case.mark:
        yield Ruling(case.mark.boot_id, frozenset() if case.mark.tainted else frozenset({Kind.NEW_BOOT}))
    if where is Situation.BARRED or case.verdict is None:
        return
    if case.dead:
        yield Ruling(case.verdict.boot_id, case.verdict.kinds)
    elif isinstance(step, Delete | ForceDelete):
        yield Ruling(case.verdict.boot_id, frozenset({Kind.LAST_WORD}), word=True)


@dataclass(frozen=True)
class Measured:
    """What one happening adds to what was counted: a step that is over, in seconds, and kinds of evidence."""

    spent: tuple[tuple[Stage, float], ...] = ()
    kinds: tuple[Kind, ...] = ()


@dataclass
class _Node:
    stage: Stage | None = None
    since: float = 0.0
    ruled: set[tuple[str, bool]] = field(default_factory=set)


class Progress:
    """Of all nodes that are looked at closely."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}

    @property
    def nodes(self) -> Mapping[Stage, int]:
        """How many nodes are in each step now."""
        found = Counter(one.stage for one in self._nodes.values())
        return {one: found[one] for one in Stage}

    def hear(self, happening: Happening, now: float) -> Measured:
        """``now``: when it happened. A step that is given up, because another controller leads, has no duration."""
        match happening:
            case Decided(node=name, step=step, case=case):
                node, found = self._nodes.setdefault(name, _Node()), stage(case, step, now)
                if node.stage is None and found and situation(case) is Situation.FREE:
                    node.stage, node.since = Stage.SUSPECT, now - silence(case, now)
                return Measured(tuple(_moved(node, found, now)), tuple(_ruled(node, case, step)))
            case Rested(node=name):
                return Measured(tuple(_moved(self._nodes.pop(name, _Node()), None, now)))
            case Stopped():
                self._nodes.clear()
        return Measured()


def _moved(node: _Node, stage: Stage | None, now: float) -> Iterator[tuple[Stage, float]]:
    """The step that is over, if another one has begun."""
    before, since = node.stage, node.since
    if stage is before:
        return
    node.stage, node.since = stage, now
    if before:
        yield before, now - since


def _ruled(node: _Node, case: Case, step: Step) -> Iterator[Kind]:
    """What has decided about a boot, when it is judged for the first time: later proofs of the same add nothing."""
    for ruling in rulings(case, step):
        key = (ruling.boot_id, ruling.word)
        if key not in node.ruled:
            node.ruled.add(key)
            yield from sorted(ruling.kinds, key=lambda kind: kind.value)
