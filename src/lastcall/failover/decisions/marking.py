"""From suspicion to the mark (pure): remaining objections, and the mark that begins the failover."""

from dataclasses import replace as replace_step
from shlex import quote

from msgspec.structs import replace

from lastcall.failover.decisions import fencer_choice, remaining, replacement_tracking
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import Mark, Step, SwitchOff, Wait
from lastcall.failover.evidence import owner_mark
from lastcall.model.drain_mark import describe_drain
from lastcall.model.fence_policy import FailoverMode


def claim_if_dead(case: Case, now: float) -> Step | None:
    """The boot is already proved to be over: nothing is powered off, so no limit applies."""
    if not case.is_boot_dead:
        return None
    if not remaining.has_anything_to_remove(case):
        return Wait(f"the boot of node {case.name} is over, and nothing on it has to be failed over")
    return mark_node(case, now)


def wait_without_fencer(case: Case, now: float) -> Step | None:
    """The policy names no fencer: waits for another proof."""
    del now
    if case.devices:
        return None
    awaited = [one for one in (case.verdict.awaited if case.verdict else ()) if one.at is not None]
    what = f": {awaited[0].what}" if awaited else ""
    tainted = f"; {worth}" if (worth := manual_taint_note(case)) else ""
    return Wait(
        f"node {case.name} is silent, its policy names no fencer, and a proof is waited for{what}{tainted}",
        until=awaited[0].at if awaited else None,
    )


def manual_taint_note(case: Case) -> str:
    """Why an out-of-service taint set by others proves nothing, with advice; empty if there is none.

    A controller that found the taint in place cannot know whether it is older than the current boot. Nothing can be
    proved about a node without a boot ID.
    """
    if (
        case.is_boot_dead
        or case.node is None
        or not remaining.has_out_of_service_taint(case)
        or (case.mark and case.mark.tainted)
    ):
        return ""
    if not case.node.boot_id:
        return ""
    return (
        "the taint out-of-service that somebody has set counts for a controller that saw it being set, and has heard nothing"
        f" of the node since; else say it by {acknowledge_command(case)}"
    )


def acknowledge_command(case: Case) -> str:
    """The command by which a person confirms that the machine of a node with a boot ID is off."""
    assert case.node
    return f"lastcall failover acknowledge {quote(case.name)} --boot-id {quote(case.node.boot_id)}"


def wait_for_limits(case: Case, now: float) -> Step | None:
    """A storm limit forbids fencing now."""
    if case.limit_answer.allowed:
        return None
    again = case.limit_answer.again if case.limit_answer.again is not None and case.limit_answer.again > now else None
    return Wait(f"node {case.name} is not fenced: {case.limit_answer.why}", until=again, limit=case.limit_answer.limit)


def prepare_fencer(case: Case, now: float) -> Step | None:
    """Selects a fencer that can be ordered off now; until then the node is not marked and uses up no limit.

    The fencers first report which machines are behind them. A policy in mode Observe calls none.
    """
    assert case.policy
    if case.policy.mode is FailoverMode.OBSERVE:
        why = fencer_choice.all_unusable_reason(case.devices)
        return Wait(f"node {case.name} would not be fenced: {why}") if why else None
    choice = fencer_choice.next_action(case, now)
    if isinstance(choice, Wait):
        return replace_step(choice, why=f"node {case.name} is not fenced: {choice.why}")
    return None if isinstance(choice, SwitchOff) else choice


def mark_node(case: Case, now: float) -> Step:
    """Marks the node; in mode Observe, reports that it would."""
    del now
    assert case.policy
    assert case.node
    reasons = case.verdict.reasons[:1] if case.verdict else ()
    why = f"node {case.name} is {'over' if case.is_boot_dead else 'suspected'}: {'; '.join(reasons) or 'nothing is heard of it'}"
    if case.node.drain:
        why += f"; {describe_drain(case.node.drain)}, and the drain leaves it to failover"
    if case.policy.mode is FailoverMode.OBSERVE:
        return Wait(f"{why}. It would be failed over now, but policy {case.policy.name} only observes")
    mark = owner_mark.new_mark(boot_id=case.node.boot_id, policy=case.policy.name, by=case.me, wall=case.wall)
    ours = case.mark is not None and case.mark.tainted and remaining.has_our_taint(case)
    lost = (
        replacement_tracking.pods_to_record(case) if case.is_boot_dead else replacement_tracking.known_lost_pods(case)
    )
    return Mark(mark=replace(mark, tainted=ours, lost=lost), why=why)


def take_over(case: Case, now: float) -> Step | None:
    """Takes over the mark of a controller that no longer leads."""
    del now
    mark = case.mark
    if mark is None or mark.by == case.me:
        return None
    return Mark(mark=replace(mark, by=case.me), why=f"{mark.by} does not lead any more, and {case.me} goes on")
