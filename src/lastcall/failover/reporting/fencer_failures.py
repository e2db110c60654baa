"""The failing fencers in the status of a FencePolicy (pure): written by the controller, and read back by tools.

Only fencers of lost nodes whose boot is not proved to be over appear: no other fencer is called.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from lastcall.failover.decisions import decision_table, fencer_choice
from lastcall.failover.decisions.case import Case, FencerCall, FencerState
from lastcall.failover.decisions.steps import Wait
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch

WORKING = "FencersWorking"
"""The condition of a policy that says whether the fencers of its lost nodes answer."""
MOST = 16
"""The most entries of ``status.fencers``: the object must stay small even if a whole rack of BMCs fails."""
LONGEST = 1024
"""The most characters of an error."""


class FailureReason(Enum):
    """How a fencer fails."""

    FAILED = "Failed"
    """A read or an order failed."""
    UNUSABLE = "Unusable"
    """It cannot be created, for instance because a Secret or a library is missing."""
    REFUSED = "Refused"
    """It would, or might, power off another machine."""


@dataclass(frozen=True, kw_only=True)
class FencerFailure:
    """A failing fencer of one node. ``next_try``: seconds since 1970; None if it is now, or unknown."""

    name: str
    node: str
    boot_id: str
    reason: FailureReason
    last_error: str
    attempts: int = 0
    next_try: float | None = None


def list_failures(case: Case, now: float, wall: float) -> tuple[FencerFailure, ...]:
    """The failing fencers of one node, in the policy's order.

    ``now``, on the clock of the Case, is the moment ``wall``.
    """
    if case.is_boot_dead or case.node is None or case.policy is None:
        return ()
    found = [(device, *failure) for device in case.devices if (failure := _find_failure(device))]
    if not found:
        return ()
    step = decision_table.decide(case, now)
    until = step.until if isinstance(step, Wait) and step.stuck else None
    dates = [until if reason is FailureReason.FAILED else device.again for device, reason, _ in found]
    return tuple(
        FencerFailure(
            name=device.name,
            node=case.name,
            boot_id=case.node.boot_id,
            reason=reason,
            last_error=error,
            attempts=fencer_choice.attempt_count(device),
            next_try=wall + at - now if at is not None and at > now else None,
        )
        for (device, reason, error), at in zip(found, dates, strict=True)
    )


def _find_failure(device: FencerState) -> tuple[FailureReason, str] | None:
    if device.trouble:
        return FailureReason.UNUSABLE, device.trouble
    if device.rival:
        return FailureReason.REFUSED, device.rival
    if device.judgement is not None and not device.judgement.allows_fencing(unchecked=device.unchecked):
        return FailureReason.REFUSED, device.judgement.why
    error = fencer_choice.last_error(device)
    return (FailureReason.FAILED, error) if error else None


@dataclass
class PolicyFencers:
    """The fencers of the lost nodes of one policy."""

    failing: list[FencerFailure] = field(default_factory=list)
    answered: bool = False
    """Whether a fencer of any of them has reported which machine is behind it."""

    @property
    def working_condition(self) -> dict[str, str]:
        """The condition ``FencersWorking`` without its timestamps."""
        if self.failing:
            first = self._failures_in_order[0]
            more = f", and {len(self.failing) - 1} more" if len(self.failing) > 1 else ""
            message = f"fencer {first.name} of node {first.node}{more}: {first.last_error[:LONGEST]}"
            return {"type": WORKING, "status": "False", "reason": first.reason.value, "message": message}
        if self.answered:
            message = "the fencers of lost nodes answer"
            return {"type": WORKING, "status": "True", "reason": "Answering", "message": message}
        message = "no fencer was asked: no node is lost for which this policy holds"
        return {"type": WORKING, "status": "Unknown", "reason": "NotAsked", "message": message}

    @property
    def status_entries(self) -> list[dict[str, Any]]:
        """The entries of ``status.fencers``."""
        return [_to_entry(one) for one in self._failures_in_order[:MOST]]

    @property
    def _failures_in_order(self) -> list[FencerFailure]:
        return sorted(self.failing, key=lambda one: (one.node, one.name))


def _to_entry(one: FencerFailure) -> dict[str, Any]:
    entry = {
        "node": one.node,
        "name": one.name,
        "bootID": one.boot_id,
        "reason": one.reason.value,
        "lastError": one.last_error[:LONGEST],
        "attempts": one.attempts,
    }
    if one.next_try is not None:
        entry["nextTry"] = datetime.fromtimestamp(round(one.next_try), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return entry


def parse_failures(status: Mapping[str, Any], *, node: str, boot_id: str) -> Mapping[str, FencerFailure]:
    """The entries of ``status.fencers`` for a boot of a node, by the fencer's name; unreadable entries are skipped."""
    entries = status.get("fencers")
    found = [_parse_entry(one) for one in entries if isinstance(one, Mapping)] if isinstance(entries, list) else []
    return {one.name: one for one in found if one and (one.node, one.boot_id) == (node, boot_id)}


def _parse_entry(entry: Mapping[str, Any]) -> FencerFailure | None:
    try:
        text = entry.get("nextTry")
        return FencerFailure(
            name=str(entry["name"]),
            node=str(entry["node"]),
            boot_id=str(entry["bootID"]),
            reason=FailureReason(entry["reason"]),
            last_error=str(entry["lastError"]),
            attempts=int(entry["attempts"]),
            next_try=datetime.fromisoformat(text).timestamp() if text else None,
        )
    except (KeyError, ValueError, TypeError):
        return None


def with_reported_failure(device: FencerState, failure: FencerFailure | None, now: float) -> FencerState:
    """The fencer's state as the controller that wrote ``failure`` knows it; ``now`` in seconds since 1970."""
    if failure is None:
        return device
    device = replace(device, again=failure.next_try)
    match failure.reason:
        case FailureReason.UNUSABLE:
            return replace(device, trouble=failure.last_error)
        case FailureReason.REFUSED:
            return replace(device, judgement=TargetJudgement(TargetMatch.OTHER, failure.last_error), judged=now)
    pause = fencer_choice.POLL if failure.attempts % device.attempts else fencer_choice.PAUSE
    ended = (now if failure.next_try is None else failure.next_try) - pause
    one = FencerCall(began=ended, ended=ended, error=failure.last_error)
    return replace(device, unanswered=(one,), forgotten=max(0, failure.attempts - 1))


def fencers_by_policy(cases: Iterable[Case], now: float, wall: float) -> Mapping[str, PolicyFencers]:
    """The fencers of the lost nodes of each policy; the two times as in ``list_failures``."""
    found: dict[str, PolicyFencers] = {}
    for case in cases:
        if case.policy is not None:
            fencers = found.setdefault(case.policy.name, PolicyFencers())
            fencers.failing.extend(list_failures(case, now, wall))
            fencers.answered = fencers.answered or any(device.judgement is not None for device in case.devices)
    return found
