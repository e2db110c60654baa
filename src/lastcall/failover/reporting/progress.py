"""Counts the controller's decisions for metrics (pure): the time in each stage, and the evidence of each verdict.

It covers one controller while it leads; verdicts and stages of other controllers are counted by those.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.decision_table import Situation, situation_of
from lastcall.failover.decisions.steps import Delete, ForceDelete, Step
from lastcall.failover.evidence.proofs import ProofKind
from lastcall.failover.reporting.controller_events import Happening, LeadershipEnded, NodeSettled, StepDecided
from lastcall.failover.reporting.stages import Stage, silent_seconds, stage_of


@dataclass(frozen=True)
class Ruling:
    """A boot was judged to be over, or, by its ``word``, some of its pods. ``kinds``: the deciding evidence."""

    boot_id: str
    kinds: frozenset[ProofKind]
    word: bool = False


def list_rulings(case: Case, step: Step) -> Iterator[Ruling]:
    """The verdicts on which the decision ``step`` rests.

    A marked boot that is replaced by another one was already over if it was tainted, because the taint requires a
    proof.
    """
    where = situation_of(case)
    if where is Situation.BOOTED and case.mark:
        yield Ruling(case.mark.boot_id, frozenset() if case.mark.tainted else frozenset({ProofKind.NEW_BOOT}))
    if where is Situation.BARRED or case.verdict is None:
        return
    if case.is_boot_dead:
        yield Ruling(case.verdict.boot_id, case.verdict.kinds)
    elif isinstance(step, Delete | ForceDelete):
        yield Ruling(case.verdict.boot_id, frozenset({ProofKind.LAST_WORD}), word=True)


@dataclass(frozen=True)
class ProgressDelta:
    """The increments of one happening: a completed stage with its seconds, and kinds of evidence."""

    spent: tuple[tuple[Stage, float], ...] = ()
    kinds: tuple[ProofKind, ...] = ()


@dataclass
class _NodeProgress:
    stage: Stage | None = None
    since: float = 0.0
    ruled: set[tuple[str, bool]] = field(default_factory=set)


class Progress:
    """The progress of all nodes in trouble."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeProgress] = {}

    @property
    def nodes_by_stage(self) -> Mapping[Stage, int]:
        """The number of nodes in each stage now."""
        found = Counter(one.stage for one in self._nodes.values())
        return {one: found[one] for one in Stage}

    def handle_event(self, happening: Happening, now: float) -> ProgressDelta:
        """Counts a happening at ``now``.

        A stage that is abandoned, because another controller leads, has no duration.
        """
        match happening:
            case StepDecided(node=name, step=step, case=case):
                node, found = self._nodes.setdefault(name, _NodeProgress()), stage_of(case, step, now)
                if node.stage is None and found and situation_of(case) is Situation.FREE:
                    node.stage, node.since = Stage.SUSPECT, now - silent_seconds(case, now)
                return ProgressDelta(tuple(_enter_stage(node, found, now)), tuple(_new_kinds(node, case, step)))
            case NodeSettled(node=name):
                return ProgressDelta(tuple(_enter_stage(self._nodes.pop(name, _NodeProgress()), None, now)))
            case LeadershipEnded():
                self._nodes.clear()
        return ProgressDelta()


def _enter_stage(node: _NodeProgress, stage: Stage | None, now: float) -> Iterator[tuple[Stage, float]]:
    """The completed stage, if another one begins."""
    before, since = node.stage, node.since
    if stage is before:
        return
    node.stage, node.since = stage, now
    if before:
        yield before, now - since


def _new_kinds(node: _NodeProgress, case: Case, step: Step) -> Iterator[ProofKind]:
    """The evidence of a boot's first verdict; later proofs of the same boot are not counted."""
    for ruling in list_rulings(case, step):
        key = (ruling.boot_id, ruling.word)
        if key not in node.ruled:
            node.ruled.add(key)
            yield from sorted(ruling.kinds, key=lambda kind: kind.value)
