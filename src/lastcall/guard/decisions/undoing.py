"""What an uninstallation has undone before the guard is gone, and what it tells of the rest (pure)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from lastcall.model.foreign_text import plain_text
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState

MOST_TOLD = 10
"""Pods that are named; a client may cut off what is longer."""

MOST_MESSAGE = 120
"""Characters of a provider's message that are repeated."""


class UnfinishedPreparation(NamedTuple):
    """A preparation that has not ended."""

    policy: GuardPolicy
    held: HeldPod


def list_unfinished(policies: Iterable[GuardPolicy]) -> list[UnfinishedPreparation]:
    """The entries of all policies that are not released, in their order."""
    return [
        UnfinishedPreparation(policy, one)
        for policy in policies
        for one in policy.status.pods
        if one.state is not PreparationState.RELEASED
    ]


def request_undo(held: HeldPod | None, now: datetime) -> HeldPod | None:
    """The entry with the request to undo it at once; None if that is requested already, or there is nothing to undo.

    An entry in a state of a newer version stays as it is.
    """
    if held is None or held.state in (PreparationState.RELEASED, PreparationState.UNKNOWN) or held.undo_requested_at:
        return None
    return replace(held, undo_requested_at=now, next_attempt_at=None)


def describe_unfinished(left: Sequence[UnfinishedPreparation]) -> tuple[str, ...]:
    """A sentence for each pod whose preparation is not undone, and one for those that are too many."""
    told = [_describe(*one) for one in left[:MOST_TOLD]]
    more = [f"the preparations of {len(left) - MOST_TOLD} more pods are not undone"] if len(left) > MOST_TOLD else []
    return (*told, *more)


def _describe(policy: GuardPolicy, held: HeldPod) -> str:
    said = plain_text(held.message)[:MOST_MESSAGE]
    what = f"pod {policy.metadata.namespace}/{held.name} (GuardPolicy {policy.name}): its preparation is not undone"
    return f"{what}: {said}" if said else what
