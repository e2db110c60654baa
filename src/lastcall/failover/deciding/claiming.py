"""From suspicion to the mark (pure): what still speaks against beginning, and the mark with which it begins."""

from dataclasses import replace as replace_step
from shlex import quote

from msgspec.structs import replace

from lastcall.failover.deciding import fencing, following, remaining
from lastcall.failover.deciding.case import Case
from lastcall.failover.deciding.steps import Mark, Step, SwitchOff, Wait
from lastcall.failover.knowing import owner
from lastcall.model.fence_policy import Mode


def proved(case: Case, now: float) -> Step | None:
    """The boot is over already, by whatever proof: nothing has to be switched off, so no limit is asked."""
    if not case.dead:
        return None
    if not remaining.anything(case):
        return Wait(f"the boot of node {case.name} is over, and nothing on it has to be failed over")
    return claim(case, now)


def unfenceable(case: Case, now: float) -> Step | None:
    """The policy names no fencer: another proof is waited for."""
    del now
    if case.devices:
        return None
    awaited = [one for one in (case.verdict.awaited if case.verdict else ()) if one.at is not None]
    what = f": {awaited[0].what}" if awaited else ""
    tainted = f"; {worth}" if (worth := by_hand(case)) else ""
    return Wait(
        f"node {case.name} is silent, its policy names no fencer, and a proof is waited for{what}{tainted}",
        until=awaited[0].at if awaited else None,
    )


def by_hand(case: Case) -> str:
    """What a taint out-of-service is worth that is not lastcall's, while it proves nothing; empty if there is none.

    Who has found it standing there cannot know whether it is older than the boot that he sees. Of a node without a boot id
    nothing can be said or proved.
    """
    if case.dead or case.node is None or not remaining.out_of_service(case) or (case.mark and case.mark.tainted):
        return ""
    if not case.node.boot_id:
        return ""
    return (
        "the taint out-of-service that somebody has set counts for a controller that saw it being set, and has heard nothing"
        f" of the node since; else say it by {acknowledge(case)}"
    )


def acknowledge(case: Case) -> str:
    """The command by which a person says that the machine of a node with a boot id is off."""
    assert case.node
    return f"lastcall failover acknowledge {quote(case.name)} --boot-id {quote(case.node.boot_id)}"


def limits(case: Case, now: float) -> Step | None:
    """The limits that protect the cluster stand against it."""
    if case.limits.allowed:
        return None
    again = case.limits.again if case.limits.again is not None and case.limits.again > now else None
    return Wait(f"node {case.name} is not fenced: {case.limits.why}", until=again, limit=case.limits.limit)


def fencer(case: Case, now: float) -> Step | None:
    """A fencer is to be told to switch off at once: until then the node is not marked, and takes no place among the limits.

    The fencers are asked before which machines are behind them. With a policy that only observes none is asked.
    """
    assert case.policy
    if case.policy.mode is Mode.OBSERVE:
        why = fencing.unusable(case.devices)
        return Wait(f"node {case.name} would not be fenced: {why}") if why else None
    choice = fencing.next_for(case, now)
    if isinstance(choice, Wait):
        return replace_step(choice, why=f"node {case.name} is not fenced: {choice.why}")
    return None if isinstance(choice, SwitchOff) else choice


def claim(case: Case, now: float) -> Step:
    """It is marked; with a policy that only observes it is said that it would be."""
    del now
    assert case.policy
    assert case.node
    reasons = case.verdict.reasons[:1] if case.verdict else ()
    why = (
        f"node {case.name} is {'over' if case.dead else 'suspected'}: {'; '.join(reasons) or 'nothing is heard of it'}"
    )
    if case.policy.mode is Mode.OBSERVE:
        return Wait(f"{why}. It would be failed over now, but policy {case.policy.name} only observes")
    mark = owner.begun(boot_id=case.node.boot_id, policy=case.policy.name, by=case.me, wall=case.wall)
    ours = case.mark is not None and case.mark.tainted and remaining.our_taint(case)
    lost = following.wanted(case) if case.dead else following.known(case)
    return Mark(mark=replace(mark, tainted=ours, lost=lost), why=why)


def take_over(case: Case, now: float) -> Step | None:
    """Somebody has begun who does not lead any more: the mark becomes ours."""
    del now
    mark = case.mark
    if mark is None or mark.by == case.me:
        return None
    return Mark(mark=replace(mark, by=case.me), why=f"{mark.by} does not lead any more, and {case.me} goes on")
