"""Which fencer is asked what next, so that a machine is switched off and known to be off (pure).

The fencers of a policy have their turns in its order, each for as many attempts as the policy gives it. An attempt is a
question for the target that is not answered, or an ``off``: that it was accepted proves nothing, so the status is asked
until it was OFF twice; and that it has failed proves nothing either, so the status is asked all the same. When all have
failed, all are tried again.

The owner of an ``off`` sees to it that it is over before somebody else may lead: ``order_seconds`` says how long it may take.
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
"""Seconds between two questions for the status, and between two attempts."""
STILL = 5.0
"""So long the status is asked after an ``off`` that has failed: the device may have begun all the same."""
AGAIN = 5.0
"""Seconds between two questions to a fencer that has said OFF twice, while something else speaks against it."""
HOLDS = 60.0
"""Seconds for which it is believed which machine is behind a fencer: its address may be another one's (DHCP, a swapped board)."""
PAUSE = 30.0
"""Seconds after which fencers that have all failed are tried again."""
MARGIN = 0.5
"""Seconds in which a request that has used up its time is ended."""
LEAST = 1.0
"""Seconds without which a request is not begun."""

_NOT_OFF = "it accepted the order, and its status was not OFF in time"

Answer = PowerSeen | InstanceSeen
Asked = AskTarget | AskPower
Choice = Asked | SwitchOff | Wait


def order_seconds(timeout: float, *, over_by: float, now: float) -> float:
    """How many seconds a request that begins now may take; 0: it is not begun.

    ``over_by``: until when nobody else leads, on the clock of ``now``: ``lease`` seconds after the last renewal that was
    confirmed was sent.
    """
    seconds = min(timeout, over_by - now - MARGIN)
    return seconds if seconds >= LEAST else 0.0


def order_deadline(timeout: float, *, began: float, over_by: float) -> float:
    """Until when a request may last that began then; ``over_by`` as above, as it is now: who leads puts it off again."""
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
    """What comes next while nothing proves yet that the boot is over.

    ``seconds_apart``: between two answers OFF that count as two (``facts.seconds_apart``). ``fresh``: for so long a sign of life outweighs
    them. ``suspected``: since when the node is; the delay of the first fencer begins there. A fencer that has said OFF twice,
    and two more times at least ``2 * fresh`` after the second, and is still not believed has failed, and for good. It is
    judged by what it said then: a sign of life that came late outweighs what it had said before.
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
    """``choose_action`` for a node that a policy holds for, by what its mark says: one that may have been told is not waited for."""
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
    """Why none of them can be used, as far as that is known without a question to any; empty if one can be, or there is none."""
    faults = [_fencer_fault(device, None) for device in devices]
    return "; ".join(faults) if all(faults) else ""


def attempt_count(device: FencerState) -> int:
    """How many attempts it has had since this boot is observed."""
    return _attempts_used(device)


def last_error(device: FencerState) -> str:
    """Why its last attempt that is over has failed; empty if none has, or if it has answered since.

    An order that was accepted is over when its status was still not OFF after the fencer's timeout.
    """

    def is_over(order: FencerCall) -> bool:
        return bool(order.error) or any(answer.asked >= order.ended + device.timeout for answer in device.answers)

    tries = [*(one for one in device.unanswered if one.ended > device.judged), *filter(is_over, device.offs)]
    return (max(tries, key=lambda one: one.ended).error or _NOT_OFF) if tries else ""


def _target_reason(judgement: TargetJudgement) -> str:
    """By what the machine behind a fencer is taken for the node's."""
    if judgement.match is TargetMatch.SAME:
        return judgement.why
    return "the policy says which machine is behind it, and has it not checked (targetCheck: Disabled)"


def is_judgement_fresh(device: FencerState, now: float) -> bool:
    """Whether what it was judged to be may be relied on for a question for the status."""
    return device.judgement is not None and now < device.judged + HOLDS


def _just_judged(device: FencerState, now: float) -> bool:
    """Before it is told to switch off: an attempt that has failed may mean that its address is no longer its own."""
    return is_judgement_fresh(device, now) and all(one.ended <= device.judged for one in _all_attempts(device))


def _verify_off(
    device: FencerState, *, boot_id: str, apart: float, fresh: float, now: float
) -> Asked | Wait | str | None:
    """What its last ``off`` still needs, and before its status is asked long after its target was, that again.

    As ``_missing_verification`` says it; None also if it has not answered which machine it is: that was an attempt, and is tried again
    in its turn.
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
    """What its last ``off`` still needs. None: nothing, it was in vain or there was none; a text: it is not believed.

    Nothing is asked of a device that has come to be about another machine since, as far as is known.
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
    """The status is not OFF yet: asked again, while that may still come."""
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
    """The latest answers that are OFF without a break, the oldest first."""
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
    """Between two attempts of one fencer, and, longer, after all have used up theirs."""
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
    """Before its first attempt: from when the node was suspected, or the last one of another fencer was over."""
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
    """How often it has used up its attempts."""
    return _attempts_used(device) // device.attempts
