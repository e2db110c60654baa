"""Selects the next call to a fencer, so that a machine is powered off and confirmed off (pure).

The fencers of a policy take turns in its order, each with the number of attempts that the policy gives it. An attempt
is an unanswered target read, or an order to power off. An accepted order proves nothing, so the power state is read
until it is OFF twice. A failed order proves nothing either, so the power state is read as well. After all fencers have
failed, all are tried again.

The caller must end an order before another controller may lead: ``order_seconds`` limits its duration.
"""

from collections.abc import Sequence

from lastcall.failover.decisions.case import Case, FencerCall, FencerState
from lastcall.failover.decisions.steps import AskPower, AskTarget, SwitchOff, Wait
from lastcall.failover.evidence.facts import InstanceSeen, PowerSeen
from lastcall.failover.evidence.facts import seconds_apart as gap
from lastcall.failover.evidence.proofs import power_of
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch
from lastcall.model import duration
from lastcall.model.power import PowerState

POLL = 1.0
"""Seconds between two reads of the power state, and between two attempts."""
STILL = 5.0
"""Seconds for which the power state is read after a failed order: the device may be carrying it out."""
AGAIN = 5.0
"""Seconds between two reads of a fencer that said OFF twice while other evidence contradicts it."""
HOLDS = 60.0
"""Seconds for which a target read stays valid: the address may change machines (DHCP, a replaced board)."""
PAUSE = 30.0
"""Seconds before fencers that have all failed are tried again."""
MARGIN = 0.5
"""Seconds reserved to end a request whose time is over."""
LEAST = 1.0
"""The least number of seconds with which a request is started."""

_NOT_OFF = "it accepted the order, and its status was not OFF in time"

Answer = PowerSeen | InstanceSeen
Asked = AskTarget | AskPower
Choice = Asked | SwitchOff | Wait


def order_seconds(timeout: float, *, over_by: float, now: float) -> float:
    """The seconds available for a request that starts now; 0: do not start it.

    ``over_by``: the time until which no other controller leads, on the clock of ``now``: the lease duration after the
    last confirmed renewal was sent.
    """
    seconds = min(timeout, over_by - now - MARGIN)
    return seconds if seconds >= LEAST else 0.0


def order_deadline(timeout: float, *, began: float, over_by: float) -> float:
    """The deadline of a request that started at ``began``; ``over_by`` grows while this controller renews its lease."""
    return min(began + timeout, over_by - MARGIN)


def choose_action(
    devices: Sequence[FencerState],
    *,
    boot_id: str,
    apart: float,
    now: float,
    fresh: float = 20.0,
    suspected: float = float("-inf"),
) -> Choice:
    """The next call while no proof says yet that the boot is over.

    ``apart``: seconds between two OFF answers that count as two (``facts.seconds_apart``). ``fresh``: seconds for which
    a sign of life outweighs them. ``suspected``: when the node was suspected; the first fencer's delay starts there.

    A fencer fails for good if it says OFF twice, and twice more at least ``2 * fresh`` after the second, and is still
    contradicted. Only its later answers count for that: a late sign of life outweighs the earlier ones.
    """
    verifying = [_verify_off(device, boot_id=boot_id, apart=apart, fresh=fresh, now=now) for device in devices]
    if steps := [step for step in verifying if isinstance(step, Asked | Wait)]:
        return next((step for step in steps if not isinstance(step, Wait)), steps[0])
    faults = [_fencer_fault(device, why) for device, why in zip(devices, verifying, strict=True)]
    usable = [device for device, fault in zip(devices, faults, strict=True) if not fault]
    if not usable:
        return Wait(why="; ".join(faults) or "the policy has no fencer", stuck=True)
    turn = min(usable, key=_rounds_used)
    if wait := _attempt_pause(usable, turn, now) or _first_attempt_delay(devices, turn, suspected, now):
        return wait
    ordinal = f"attempt {_attempts_used(turn) % turn.attempts + 1} of {turn.attempts}"
    if turn.judgement is None or not _just_judged(turn, now):
        return AskTarget(fencer=turn.name, why=f"{turn.name} is asked which machine is behind it, {ordinal}")
    return SwitchOff(
        fencer=turn.name,
        boot_id=boot_id,
        within=turn.timeout,
        why=f"{turn.name} is told to switch off, {ordinal}: {_target_reason(turn.judgement)}",
    )


def next_action(case: Case, now: float) -> Choice:
    """``choose_action`` for a node with a policy; a fencer's delay does not apply once the mark records an order."""
    assert case.policy
    assert case.node
    told = case.mark is not None and case.mark.switched_off and case.mark.boot_id == case.node.boot_id
    return choose_action(
        case.devices,
        boot_id=case.node.boot_id,
        apart=case.policy.apart,
        fresh=case.policy.fresh,
        suspected=float("-inf") if told else case.quiet_since + case.policy.suspect_after,
        now=now,
    )


def all_unusable_reason(devices: Sequence[FencerState]) -> str:
    """Why no fencer is usable, as far as known without a call; empty if one is usable, or the policy has none."""
    faults = [_fencer_fault(device, None) for device in devices]
    return "; ".join(faults) if all(faults) else ""


def attempt_count(device: FencerState) -> int:
    """The number of attempts since this boot is observed."""
    return _attempts_used(device)


def last_error(device: FencerState) -> str:
    """Why its last completed attempt failed; empty if it did not, or if the fencer has answered since.

    An accepted order failed if the power state is still not OFF after the fencer's timeout.
    """

    def is_over(order: FencerCall) -> bool:
        return bool(order.error) or any(answer.asked >= order.ended + device.timeout for answer in device.answers)

    tries = [*(one for one in device.unanswered if one.ended > device.judged), *filter(is_over, device.offs)]
    return (max(tries, key=lambda one: one.ended).error or _NOT_OFF) if tries else ""


def _target_reason(judgement: TargetJudgement) -> str:
    """The reason to take the machine behind a fencer for the node's."""
    if judgement.match is TargetMatch.SAME:
        return judgement.why
    return "the policy says which machine is behind it, and has it not checked (targetCheck: Disabled)"


def is_judgement_fresh(device: FencerState, now: float) -> bool:
    """Whether the last target read is recent enough to read the power state."""
    return device.judgement is not None and now < device.judged + HOLDS


def _just_judged(device: FencerState, now: float) -> bool:
    """Whether the target may be relied on for an order: a failed attempt may mean that the address changed machines."""
    return is_judgement_fresh(device, now) and all(one.ended <= device.judged for one in _all_attempts(device))


def _verify_off(
    device: FencerState, *, boot_id: str, apart: float, fresh: float, now: float
) -> Asked | Wait | str | None:
    """The verification that its last order still needs; a stale target is read again before the power state.

    As ``_missing_verification`` returns it; also None if the target read was not answered: that counts as an attempt,
    and is repeated in the fencer's turn.
    """
    step = _missing_verification(device, boot_id=boot_id, apart=apart, fresh=fresh, now=now)
    if not isinstance(step, AskPower) or is_judgement_fresh(device, now):
        return step
    if device.unanswered and device.unanswered[-1].ended >= device.judged + HOLDS:
        return None
    return AskTarget(
        fencer=device.name, why=f"{device.name} is asked again which machine is behind it, before its status counts"
    )


def _missing_verification(
    device: FencerState, *, boot_id: str, apart: float, fresh: float, now: float
) -> AskPower | Wait | str | None:
    """The verification that the last order still needs. None: none, or the order failed; a text: OFF is contradicted.

    A device that is judged to be another machine's since then is not called.
    """
    if not device.offs or device.trouble or not _is_about_node(device):
        return None
    last = device.offs[-1]
    said = [answer for answer in device.answers if answer.boot_id == boot_id and answer.asked >= last.ended]
    if not said:
        return AskPower(fencer=device.name, why=f"whether {device.name} has switched it off")
    if power_of(said[-1]) is not PowerState.OFF:
        return _wait_for_off(device, last, said[-1], now)
    run = _trailing_offs(said)
    twice = next((answer for answer in run if gap(run[0], answer) >= apart), None)
    if twice is None:
        return _ask_at(
            device, run[0].answered + apart, now, f"{device.name} has said OFF once, and is asked a second time"
        )
    late = [answer for answer in run if answer.asked >= twice.asked + 2 * fresh]
    if len(late) < 2:
        return _ask_at(
            device, run[-1].answered + AGAIN, now, f"{device.name} has said OFF twice, and something else ALIVE"
        )
    return f"{device.name} says OFF, and is not believed: something else has said ALIVE ever since"


def _wait_for_off(device: FencerState, last: FencerCall, said: Answer, now: float) -> AskPower | Wait | None:
    """The power state is not OFF yet: read it again while it may still change."""
    if last.error and power_of(said) is PowerState.UNKNOWN:
        return None
    patience = min(STILL, device.timeout) if last.error else device.timeout
    if said.asked >= last.ended + patience:
        return None
    return _ask_at(
        device, said.asked + POLL, now, f"{device.name} was told to switch off, and still says {_power_text(said)}"
    )


def _power_text(said: Answer) -> str:
    if isinstance(said, InstanceSeen):
        return said.state.value
    return f"{said.power.value} ({said.why})" if said.why else said.power.value


def _ask_at(device: FencerState, at: float, now: float, why: str) -> AskPower | Wait:
    return AskPower(fencer=device.name, why=why) if now >= at else Wait(why=why, until=at)


def _trailing_offs(said: Sequence[Answer]) -> Sequence[Answer]:
    """The answers since the last one that was not OFF, the oldest first."""
    begin = max((i + 1 for i, answer in enumerate(said) if power_of(answer) is not PowerState.OFF), default=0)
    return said[begin:]


def _is_about_node(device: FencerState) -> bool:
    if device.judgement is None or device.rival:
        return False
    return device.judgement.allows_fencing(unchecked=device.unchecked)


def _fencer_fault(device: FencerState, disbelief: Asked | Wait | str | None) -> str:
    """Why it cannot be used; empty if it can."""
    if device.trouble:
        return f"{device.name} cannot be used: {device.trouble}"
    if device.rival:
        return f"{device.name} is refused: {device.rival}"
    if device.judgement is not None and not _is_about_node(device):
        return f"{device.name} is not to be used: {device.judgement.why}"
    return disbelief if isinstance(disbelief, str) else ""


def _attempt_pause(usable: Sequence[FencerState], turn: FencerState, now: float) -> Wait | None:
    """The pause between two attempts of one fencer, and the longer one after all fencers have failed."""
    all_failed = _rounds_used(turn) > 0 and all(_rounds_used(device) == _rounds_used(turn) for device in usable)
    tries = [one for device in (usable if all_failed else [turn]) for one in _all_attempts(device)]
    over = max((one.ended for one in tries), default=float("-inf"))
    until = over + (PAUSE if all_failed else POLL)
    if now >= until:
        return None
    if not all_failed:
        return Wait(why=f"{turn.name} has failed: {_latest_error(turn)}", until=until, stuck=True)
    each = "; ".join(f"{device.name}: {_latest_error(device)}, attempts: {_attempts_used(device)}" for device in usable)
    why = f"no fencer has switched it off ({each}); tried again every {duration.format_seconds(PAUSE)}"
    return Wait(why=why, until=until, stuck=True)


def _first_attempt_delay(
    devices: Sequence[FencerState], turn: FencerState, suspected: float, now: float
) -> Wait | None:
    """The delay before its first attempt, counted from the suspicion or from the last attempt of another fencer."""
    if not turn.delay or _all_attempts(turn):
        return None
    until = max([suspected, *(one.ended for device in devices for one in _all_attempts(device))]) + turn.delay
    if now >= until:
        return None
    return Wait(
        why=f"{turn.name} is told nothing for {duration.format_seconds(turn.delay)}, as the policy says", until=until
    )


def _latest_error(device: FencerState) -> str:
    last = max(_all_attempts(device), key=lambda one: one.ended)
    return last.error or _NOT_OFF


def _all_attempts(device: FencerState) -> tuple[FencerCall, ...]:
    return (*device.unanswered, *device.offs)


def _attempts_used(device: FencerState) -> int:
    return device.forgotten + len(_all_attempts(device))


def _rounds_used(device: FencerState) -> int:
    """The number of times that it has used up its attempts."""
    return _attempts_used(device) // device.attempts
