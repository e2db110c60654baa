"""The failover of one node, as a table: what is done next, given all that is known of it (pure).

Nothing is remembered between two decisions. What has been done is read from the cluster, where the mark on the Node says
what may not be forgotten; so any controller can be stopped after any step, and any other one goes on.

Of a situation the first rule that has an answer decides, and the last one always has.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from lastcall.failover.deciding import claiming, following, forcing, leaving, proving, returning, suspicion
from lastcall.failover.deciding.case import Case
from lastcall.failover.deciding.steps import Done, Step, Wait
from lastcall.failover.knowing.owner import Unreadable

Rule = Callable[[Case, float], Step | None]


class Situation(Enum):
    """Where the node is."""

    BARRED = "it is not for us to touch"
    FREE = "nothing of ours is on it"
    UNPROVED = "it is marked, and the boot that the mark names is there, and not proved to be over"
    PROVED = "the same, and that boot is proved to be over"
    BOOTED = "it is marked, and its machine has booted again"


def situation(case: Case) -> Situation:
    """By what stands on the Node."""
    if barred(case):
        return Situation.BARRED
    assert case.node
    if case.mark is None:
        return Situation.FREE
    if case.mark.boot_id != case.node.boot_id:
        return Situation.BOOTED
    return Situation.PROVED if case.dead else Situation.UNPROVED


def barred(case: Case) -> Step | None:
    """Why nothing is decided about the node."""
    if case.node is None:
        return Done(f"there is no node {case.name}, and a deleted Node is not a dead machine")
    if case.leader != case.me:
        return Wait(f"{case.leader or 'nobody'} leads, not {case.me}")
    if isinstance(mark := case.node.mark, Unreadable):
        return Wait(f"lastcall's mark on node {case.name} {mark.why}: somebody has to take it away")
    return None


def untouchable(case: Case, now: float) -> Step | None:
    """There is no Node, another controller leads, or the mark on the Node cannot be read."""
    del now
    return barred(case)


_SUSPECTED: tuple[Rule, ...] = (
    suspicion.unwatched,
    claiming.proved,
    suspicion.heard_of,
    leaving.ended_pods,
    suspicion.nothing_to_fail_over,
    leaving.said_so,
    claiming.unfenceable,
    claiming.limits,
    claiming.fencer,
    claiming.claim,
)

_OWNED: tuple[Rule, ...] = (
    claiming.take_over,
    returning.awake,
    proving.called_off,
    proving.taken_away,
    returning.nothing_left,
    proving.switched_on,
)

TABLE: dict[Situation, tuple[Rule, ...]] = {
    Situation.BARRED: (untouchable,),
    Situation.FREE: _SUSPECTED,
    Situation.UNPROVED: (
        *_OWNED,
        proving.ask_again,
        suspicion.heard_of,
        following.record,
        leaving.ended_pods,
        proving.prove,
    ),
    Situation.PROVED: (
        *_OWNED,
        forcing.taint,
        forcing.only_tainted,
        following.record,
        forcing.force,
        forcing.detach,
        forcing.awaited,
    ),
    Situation.BOOTED: (returning.back, *_SUSPECTED),
}


def decide(case: Case, now: float) -> Step:
    """The next step for the node."""
    answers = (rule(case, now) for rule in TABLE[situation(case)])
    step = next(step for step in answers if step is not None)
    return _in_time(step, case, now) if isinstance(step, Wait) else step


def _in_time(wait: Wait, case: Case, now: float) -> Wait:
    """A proof that comes about by time alone is not overslept."""
    dated = [one.at for one in (case.verdict.awaited if case.verdict else ()) if one.at is not None and one.at > now]
    times = [*dated, *([wait.until] if wait.until is not None else [])]
    return replace(wait, until=min(times, default=None))


def table() -> str:
    """The table in Markdown, for the documentation: the rules of each situation in their order, and what they are about."""
    lines = ["| the node | its rules, in their order |", "|---|---|"]
    lines += [f"| {one.value} | {', '.join(_name(rule) for rule in rules)} |" for one, rules in TABLE.items()]
    lines += ["", "| rule | |", "|---|---|"]
    every = dict.fromkeys(rule for rules in TABLE.values() for rule in rules)
    lines += [f"| {_name(rule)} | {(rule.__doc__ or '').partition(chr(10))[0]} |" for rule in every]
    return "\n".join(lines) + "\n"


def _name(rule: Rule) -> str:
    return f"`{rule.__module__.rpartition('.')[2]}.{rule.__qualname__}`"
