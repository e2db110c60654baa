"""After the removal, or when the node is back (pure): power on, and remove lastcall's taint and mark."""

from msgspec.structs import replace

from lastcall.failover.decisions import remaining, suspicion
from lastcall.failover.decisions.case import Case, FencerState
from lastcall.failover.decisions.steps import Mark, Step, SwitchOn, Unmark, Untaint, Wait
from lastcall.failover.evidence.owner_mark import OwnerMark

RETRY = 10.0
"""Seconds between two attempts to power on."""
SETTLE = 30.0
"""Seconds without an order to power on, after the last order to power off if one of several may still be carried out,
and after a change of leader, because the previous leader may just have given an order.
"""


def undo_if_alive(case: Case, now: float) -> Step | None:
    """The boot to be ended is alive: a proof was wrong, or the machine was never powered off.

    Our taint must go immediately, because volumes are force-detached from a tainted node. A machine with an order to
    power off may still go off, so it keeps its mark for a while.
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
        return Wait(f"node {case.name} is alive again, but was ordered to power off", until=told + linger)
    return Unmark(why=f"node {case.name} is alive again, and nothing was forced")


def finish_failover(case: Case, now: float) -> Step | None:
    """Everything is removed: powers the machine on if the policy says so, and waits for the node.

    The machine stays off while pods still have to go, because nothing is forced after the order to power on.
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
    return Wait(f"node {case.name} is failed over, and its return is awaited; {_replacements_text(case)}")


def clean_up_after_return(case: Case, now: float) -> Step | None:
    """The machine has booted again: nothing is forced any more, and our taint and mark go once the node is Ready.

    The taint may go earlier (``_untaint_early``).
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
    """Removes our taint from a node that is not Ready, once everything that it was set for is removed.

    The node may need a pod that does not tolerate the taint to become Ready, such as a network plugin's: while the
    taint stands, taint eviction deletes that pod and Pod GC force-deletes it. But the taint also lets pods and volumes
    of the last boot be removed, so it stays for these. Only the node's own kubelet can show that the new boot runs:
    with Ready=False, not with the Unknown that the node controller writes. The mark stays until the node is Ready.
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
        return Wait(f"node {case.name} was switched on again, and its return is awaited; {_replacements_text(case)}")
    return _try_on(case, device, now)


def _orders_settled_at(case: Case) -> float:
    """When no order to power off can hit the next boot any more; a single accepted order has taken effect.

    A controller that leads only recently cannot know whether its order was the only one.
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
    """The replacements that are not Ready yet, and what remains on the node."""
    missing = remaining.first_names(name for name, ready in case.replacements.items() if not ready)
    left = remaining.remaining_text(case)
    return f"not Ready yet elsewhere: {missing}; {left}" if missing else left
