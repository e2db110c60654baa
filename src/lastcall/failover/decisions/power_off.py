"""A marked node whose boot is not proved to be over (pure): powers it off, unless something forbids that now."""

from msgspec.structs import replace

from lastcall.failover.decisions import fencer_choice, marking, remaining, shutdown_notice
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import AskPower, AskTarget, Mark, Step, SwitchOff, Unmark, Wait
from lastcall.failover.evidence.proofs import power_of
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.power import PowerState


def stop_without_policy(case: Case, now: float) -> Step | None:
    """The policy is gone or in mode Observe by now. Completed work stays until the node is back."""
    del now
    mark = case.mark
    if case.policy is not None and case.policy.mode is not FailoverMode.OBSERVE:
        return None
    what = "no FencePolicy holds any more" if case.policy is None else f"policy {case.policy.name} only observes"
    if mark and not mark.switched_off and not mark.tainted:
        return Unmark(why=f"{what} for node {case.name}, and nothing was done")
    return Wait(f"{what} for node {case.name}: nothing more is done; {remaining.remaining_text(case)}")


def stop_if_untainted(case: Case, now: float) -> Step | None:
    """A person removed our taint, and may know that the machine runs: nothing more is forced."""
    del now
    mark = case.mark
    if mark is None or not mark.tainted or remaining.has_our_taint(case):
        return None
    return Wait(f"somebody has taken lastcall's taint from node {case.name}: nothing more is forced until it is back")


def wait_for_next_boot(case: Case, now: float) -> Step | None:
    """The machine was ordered on again after everything was removed: pods that came later belong to its next boot."""
    del now
    mark = case.mark
    if mark is None or not mark.powered_on:
        return None
    return Wait(
        f"node {case.name} was switched on again, and its next boot is awaited; {remaining.remaining_text(case)}"
    )


def recheck_power(case: Case, now: float) -> Step | None:
    """Reads the power state of a machine that a previous leader may have powered off.

    A read is harmless, so it need not wait for the full time of suspicion as a repeated order does.
    """
    mark = case.mark
    assert case.node
    assert case.policy
    if mark is None or not mark.switched_off or now >= case.quiet_since + case.policy.suspect_after:
        return None
    device = next((one for one in case.devices if one.name == mark.fencer and not one.trouble), None)
    if device is None or device.rival or device.unanswered or device.offs:
        return None
    if device.judgement is None or not fencer_choice.is_judgement_fresh(device, now):
        return AskTarget(fencer=device.name, why=f"{device.name} is asked which machine is behind it")
    if not device.judgement.allows_fencing(unchecked=device.unchecked):
        return None
    said = [one for one in device.answers if one.boot_id == case.node.boot_id]
    if any(power_of(one) is not PowerState.OFF for one in said):
        return None
    again = said[-1].answered + (case.policy.apart if len(said) == 1 else fencer_choice.AGAIN) if said else now
    if now < again:
        return Wait(f"{device.name} has said OFF, and is asked again", until=again)
    return AskPower(fencer=device.name, why=f"whether {device.name}, which was told to switch it off before, has")


def fence_node(case: Case, now: float) -> Step:
    """The next call to a fencer. The mark records an order before it is given.

    The limits are checked again until the first order. A mark that cannot get an order now is removed, because it uses
    up a limit and would hold back all other nodes.
    """
    assert case.mark
    choice = fencer_choice.next_action(case, now)
    refused: Step | None = choice if isinstance(choice, Wait) else None
    if isinstance(choice, SwitchOff):
        refused = shutdown_notice.wait_for_own_deadline(case, now) or marking.wait_for_limits(case, now)
    if refused and not case.mark.switched_off and not case.mark.tainted:
        return Unmark(
            why=f"no order is given for node {case.name} now, and others may be fenced: {refused.why}", given_back=True
        )
    if refused or not isinstance(choice, SwitchOff):
        return refused or choice
    wanted = replace(case.mark, fencer=choice.fencer, switched_off=True)
    return choice if case.mark == wanted else Mark(mark=wanted, why=choice.why)
