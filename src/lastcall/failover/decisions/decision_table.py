"""The state machine of a node's failover, as a decision table: the next step for a Case (pure).

No state is kept between two decisions. Completed work is read from the cluster, and the mark on the Node records what
must not be lost. So a controller can stop after any step, and any other one continues.

In each situation the first rule with an answer decides; the last rule always has one.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from lastcall.failover.decisions import (
    forced_removal,
    marking,
    node_return,
    power_off,
    replacement_tracking,
    shutdown_notice,
    suspicion,
)
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import Done, Step, Wait
from lastcall.failover.evidence.owner_mark import UnreadableMark

Rule = Callable[[Case, float], Step | None]


class Situation(Enum):
    """The situation of a node, by the mark on it."""

    BARRED = "lastcall may not touch it"
    FREE = "it has no mark of lastcall"
    UNPROVED = "failover has begun; the marked boot is not proved dead yet"
    PROVED = "failover has begun; the marked boot is proved dead"
    BOOTED = "failover has begun; the machine has booted again"


def situation_of(case: Case) -> Situation:
    """Determines the situation from the Node."""
    if wait_if_barred(case):
        return Situation.BARRED
    assert case.node
    if case.mark is None:
        return Situation.FREE
    if case.mark.boot_id != case.node.boot_id:
        return Situation.BOOTED
    return Situation.PROVED if case.is_boot_dead else Situation.UNPROVED


def wait_if_barred(case: Case) -> Step | None:
    """Why nothing may be decided about the node; None if it may."""
    if case.node is None:
        return Done(f"there is no node {case.name}, and a deleted Node is not a dead machine")
    if case.leader != case.me:
        return Wait(f"{case.leader or 'nobody'} leads, not {case.me}")
    if isinstance(mark := case.node.mark, UnreadableMark):
        return Wait(f"lastcall's mark on node {case.name} {mark.why}: somebody has to take it away")
    return None


def wait_if_untouchable(case: Case, now: float) -> Step | None:
    """The Node is missing, another controller leads, or the mark cannot be read."""
    del now
    return wait_if_barred(case)


_SUSPECTED: tuple[Rule, ...] = (
    suspicion.wait_if_unwatched,
    marking.claim_if_dead,
    suspicion.wait_for_silence,
    shutdown_notice.remove_ended_pods,
    suspicion.nothing_to_fail_over,
    shutdown_notice.wait_for_own_deadline,
    marking.wait_without_fencer,
    marking.wait_for_limits,
    marking.prepare_fencer,
    marking.mark_node,
)

_OWNED: tuple[Rule, ...] = (
    marking.take_over,
    node_return.undo_if_alive,
    power_off.stop_without_policy,
    power_off.stop_if_untainted,
    node_return.finish_failover,
    power_off.wait_for_next_boot,
)

TABLE: dict[Situation, tuple[Rule, ...]] = {
    Situation.BARRED: (wait_if_untouchable,),
    Situation.FREE: _SUSPECTED,
    Situation.UNPROVED: (
        *_OWNED,
        power_off.recheck_power,
        suspicion.wait_for_silence,
        replacement_tracking.record_lost_pods,
        shutdown_notice.remove_ended_pods,
        power_off.fence_node,
    ),
    Situation.PROVED: (
        *_OWNED,
        forced_removal.taint_node,
        forced_removal.wait_if_taint_only,
        replacement_tracking.record_lost_pods,
        forced_removal.force_delete_pods,
        forced_removal.detach_volumes,
        forced_removal.wait_for_others,
    ),
    Situation.BOOTED: (node_return.clean_up_after_return, *_SUSPECTED),
}


def decide(case: Case, now: float) -> Step:
    """Returns the next step for the node."""
    answers = (rule(case, now) for rule in TABLE[situation_of(case)])
    step = next(step for step in answers if step is not None)
    return _wake_in_time(step, case, now) if isinstance(step, Wait) else step


def _wake_in_time(wait: Wait, case: Case, now: float) -> Wait:
    """Shortens a wait to the time at which a pending proof becomes valid by itself."""
    dated = [one.at for one in (case.verdict.awaited if case.verdict else ()) if one.at is not None and one.at > now]
    times = [*dated, *([wait.until] if wait.until is not None else [])]
    return replace(wait, until=min(times, default=None))


def markdown_table() -> str:
    """The table in Markdown for the documentation: the rules of each situation in order, and each rule's summary."""
    lines = ["| the node | its rules, in their order |", "|---|---|"]
    lines += [f"| {one.value} | {', '.join(_rule_name(rule) for rule in rules)} |" for one, rules in TABLE.items()]
    lines += ["", "| rule | |", "|---|---|"]
    every = dict.fromkeys(rule for rules in TABLE.values() for rule in rules)
    lines += [f"| {_rule_name(rule)} | {(rule.__doc__ or '').partition(chr(10))[0]} |" for rule in every]
    return "\n".join(lines) + "\n"


def _rule_name(rule: Rule) -> str:
    return f"`{rule.__module__.rpartition('.')[2]}.{rule.__qualname__}`"
