"""A marked node whose boot is not proved to be over (pure): it is switched off, unless something speaks against it now."""

from msgspec.structs import replace

from lastcall.failover import claiming, fencing, leaving, remaining
from lastcall.failover.case import Case
from lastcall.failover.steps import Mark, Step, SwitchOff, Unmark, Wait
from lastcall.model.fence_policy import Mode


def called_off(case: Case, now: float) -> Step | None:
    """The policy has gone, or only observes by now. What has been done stays until the node is back."""
    del now
    mark = case.mark
    if case.policy is not None and case.policy.mode is not Mode.OBSERVE:
        return None
    what = "no FencePolicy holds any more" if case.policy is None else f"policy {case.policy.name} only observes"
    if mark and not mark.switched_off and not mark.tainted:
        return Unmark(why=f"{what} for node {case.name}, and nothing was done")
    return Wait(f"{what} for node {case.name}: nothing more is done; {remaining.sentence(case)}")


def taken_away(case: Case, now: float) -> Step | None:
    """Somebody does not want our taint there: he may know that the machine runs."""
    del now
    mark = case.mark
    if mark is None or not mark.tainted or remaining.our_taint(case):
        return None
    return Wait(f"somebody has taken lastcall's taint from node {case.name}: nothing more is forced until it is back")


def switched_on(case: Case, now: float) -> Step | None:
    """It was told to start again, when nothing was left: what has come since is for its next boot."""
    del now
    mark = case.mark
    if mark is None or not mark.powered_on:
        return None
    return Wait(f"node {case.name} was switched on again, and its next boot is waited for; {remaining.sentence(case)}")


def prove(case: Case, now: float) -> Step:
    """What a fencer is asked next. Before it switches off, the mark says that it may have."""
    assert case.policy
    assert case.node
    assert case.mark
    choice = fencing.choose(
        case.devices, boot_id=case.node.boot_id, apart=case.policy.apart, fresh=case.policy.fresh, now=now
    )
    if not isinstance(choice, SwitchOff):
        return choice
    if refused := leaving.said_so(case, now) or claiming.limits(case, now):
        return refused
    wanted = replace(case.mark, fencer=choice.fencer, switched_off=True)
    return choice if case.mark == wanted else Mark(mark=wanted, why=choice.why)
