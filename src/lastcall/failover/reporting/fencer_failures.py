"""What the status of a FencePolicy says of fencers that fail (pure), and how it is read again.

Only fencers of nodes that are lost, and not proved to be over, are in it: no other fencer is asked anything.
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
"""The condition of a policy: whether the fencers of its lost nodes answer."""
MOST = 16
"""Entries of ``status.fencers``: an object must stay small, also if a whole rack of BMCs is deaf."""
LONGEST = 1024
"""Characters of an error."""


class FailureReason(Enum):
    """How a fencer fails."""

    FAILED = "Failed"
    """A question or an order has failed."""
    UNUSABLE = "Unusable"
    """It cannot be made, since a Secret or a library is missing, for instance."""
    REFUSED = "Refused"
    """It would switch off another machine, or may."""


@dataclass(frozen=True, kw_only=True)
class FencerFailure:
    """One fencer of one node. ``next_try``: seconds since 1970; None if that is now, or not known."""

    name: str
    node: str
    boot_id: str
    reason: FailureReason
    last_error: str
    attempts: int = 0
    next_try: float | None = None


def list_failures(case: Case, now: float, wall: float) -> tuple[FencerFailure, ...]:
    """Of the fencers of one node, in the policy's order. ``now``, on the clock of the Case, is the moment ``wall``."""
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
    """Of the lost nodes of one policy."""

    failing: list[FencerFailure] = field(default_factory=list)
    answered: bool = False
    """Whether a fencer of any of them has said which machine is behind it."""

    @property
    def working_condition(self) -> dict[str, str]:
        """``FencersWorking``, without the fields that say since when."""
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
        """``status.fencers``."""
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
    """What ``status.fencers`` says of a boot of a node, by the fencer's name; entries that cannot be read are left out."""
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
    """The device as the controller that wrote ``failure`` knows it; ``now`` in seconds since 1970."""
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
    """Of the lost nodes of each policy; the two times as in ``list_failures``."""
    found: dict[str, PolicyFencers] = {}
    for case in cases:
        if case.policy is not None:
            fencers = found.setdefault(case.policy.name, PolicyFencers())
            fencers.failing.extend(list_failures(case, now, wall))
            fencers.answered = fencers.answered or any(device.judgement is not None for device in case.devices)
    return found
