"""Nothing is left to force, or the node is back (pure): switching on, and taking away what is ours."""

from msgspec.structs import replace

from lastcall.failover.decisions import remaining, suspicion
from lastcall.failover.decisions.case import Case, FencerState
from lastcall.failover.decisions.steps import Mark, Step, SwitchOn, Unmark, Untaint, Wait
from lastcall.failover.evidence.owner_mark import OwnerMark

RETRY = 10.0
"""Seconds between two attempts to switch on."""
SETTLE = 30.0
"""So long after the last order to switch off none is given to switch on, if one of several may still be carried out; and so
long after one leads, since somebody else may have ordered it right before."""


def undo_if_alive(case: Case, now: float) -> Step | None:
    """The boot that was to end lives: whatever said that it was over was wrong, or it was never switched off.

    A taint of ours has to go at once, since volumes are detached by force from a node that has it. One that was told to
    go off may still go: it keeps its mark for a while.
    """
    mark = case.mark
    if mark is None or not suspicion.is_awake(case, now):
        return None
    if mark.tainted:
        why = f"node {case.name} is alive, with the boot that was taken to be over"
        return Untaint(mark=replace(mark, tainted=False), by_hand=False, why=why)
    linger = case.policy.linger if case.policy else 0.0
    told = max((one.ended for device in case.devices for one in device.offs), default=case.fence_calls_known_since)
    if mark.switched_off and now < told + linger:
        return Wait(f"node {case.name} is alive again, but was told to go off", until=told + linger)
    return Unmark(why=f"node {case.name} is alive again, and nothing was forced")


def finish_failover(case: Case, now: float) -> Step | None:
    """What had to go has gone: the machine is switched on if the policy asks for it, and the node waited for.

    It stays off for who has yet to go, since nothing is forced any more once it was told to switch on.
    """
    mark = case.mark
    if mark is None or remaining.has_anything_to_remove(case):
        return None
    if not mark.tainted and not mark.switched_off and not remaining.has_out_of_service_taint(case):
        return Unmark(why=f"nothing is left on node {case.name} that has to be failed over")
    if not mark.powered_on and (patient := remaining.patient_pods(case)):
        some = remaining.first_names(pod.key for pod in patient)
        return Wait(
            f"node {case.name} is failed over but for {some}, while that tolerates the taint; {_replacements_text(case)}"
        )
    if case.policy and case.policy.power_on and mark.switched_off:
        return _switch_on(case, mark, now)
    return Wait(f"node {case.name} is failed over, and waited for; {_replacements_text(case)}")


def clean_up_after_return(case: Case, now: float) -> Step | None:
    """The machine has booted again: nothing is forced from it any more; when it is Ready, what is ours goes.

    The taint may go before that (``_untaint_early``).
    """
    mark = case.mark
    assert case.node
    assert mark
    if not suspicion.is_awake(case, now):
        return None
    if case.node.ready != "True" or case.back_since is None:
        return _untaint_early(case, mark) or Wait(f"node {case.name} has booted again, and is not Ready yet")
    ending = [pod for pod in remaining.pods_to_remove(case) if pod.terminating]
    until = case.back_since + (case.policy.linger if case.policy else 0.0)
    if ending and now < until:
        return Wait(
            f"node {case.name} is back, and ends {remaining.first_names(pod.key for pod in ending)}", until=until
        )
    by_hand = case.policy is not None and case.policy.remove_by_hand
    if (mark.tainted and remaining.has_our_taint(case)) or (by_hand and remaining.has_out_of_service_taint(case)):
        return Untaint(mark=replace(mark, tainted=False), by_hand=by_hand, why=f"node {case.name} is back and Ready")
    return Unmark(why=f"node {case.name} is back and Ready")


def _untaint_early(case: Case, mark: OwnerMark) -> Step | None:
    """Our taint goes from a node that is not Ready, once nothing is left there that it was set for.

    What makes it Ready may be a pod that does not tolerate the taint, such as a network plugin's: as long as the taint
    stands, taint eviction deletes it, and Pod GC removes it by force. But the taint also lets volumes be detached, and pods
    be removed, that the last boot has left, so it stays for these. That the new boot runs only its own kubelet says: by
    Ready=False, not by the Unknown that others write in its place. The mark stays until the node is Ready.
    """
    assert case.node
    speaks = bool(case.node.boot_id) and case.node.ready == "False"
    if not speaks or not (mark.tainted and remaining.has_our_taint(case)) or remaining.has_anything_to_remove(case):
        return None
    why = f"node {case.name} has booted again, and nothing of its last boot is left: it may need this to become Ready"
    return Untaint(mark=replace(mark, tainted=False), by_hand=False, why=why)


def _switch_on(case: Case, mark: OwnerMark, now: float) -> Step:
    device = next((one for one in case.devices if one.name == mark.fencer and not one.trouble), None)
    if device is None:
        return Wait(f"node {case.name} is failed over; {mark.fencer}, which switched it off, cannot switch it on")
    if now < (settled := _orders_settled_at(case)):
        return Wait(f"node {case.name} is failed over, and switched on again when no order lasts", until=settled)
    if not mark.powered_on:
        return Mark(
            mark=replace(mark, powered_on=True), why=f"node {case.name} is failed over: it is switched on again"
        )
    if any(not one.error for one in device.ons):
        return Wait(f"node {case.name} was switched on again, and is waited for; {_replacements_text(case)}")
    return _try_on(case, device, now)


def _orders_settled_at(case: Case) -> float:
    """When no order to switch off can strike the next boot: one that was accepted, and alone, has done what it can.

    Who leads since a short time ago cannot know whether his was alone.
    """
    offs = [one for device in case.devices for one in device.offs]
    alone = len(offs) == 1 and not offs[0].error
    return max([case.fence_calls_known_since + SETTLE, *(one.ended + (0.0 if alone else SETTLE) for one in offs)])


def _try_on(case: Case, device: FencerState, now: float) -> Step:
    if len(device.ons) >= device.attempts:
        return Wait(f"{device.name} does not switch node {case.name} on: {device.ons[-1].error}")
    if device.ons and now < device.ons[-1].ended + RETRY:
        return Wait(f"{device.name} did not switch it on: {device.ons[-1].error}", until=device.ons[-1].ended + RETRY)
    return SwitchOn(fencer=device.name, within=device.timeout, why=f"node {case.name} is failed over")


def _replacements_text(case: Case) -> str:
    """The replacements that are not Ready yet, and what is stuck."""
    missing = remaining.first_names(name for name, ready in case.replacements.items() if not ready)
    left = remaining.remaining_text(case)
    return f"not Ready yet elsewhere: {missing}; {left}" if missing else left
