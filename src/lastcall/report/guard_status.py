"""The held pods of GuardPolicies as rows for people (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from lastcall.model.base import Facts, Time
from lastcall.model.duration import format_elapsed
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState
from lastcall.report.formatting import format_age

TITLES = ("NAMESPACE", "POD", "STATE", "DONE", "LEFT", "HELD", "POLICY", "REQUESTED BY")
LAST_TITLE = "MESSAGE"

NONE = "<none>"
"""As kubectl has it."""


class HeldPodRow(Facts, frozen=True):
    """One held pod with its policy."""

    namespace: str
    name: str
    uid: str
    policy: str
    state: PreparationState
    percent: int | None = None
    eta_seconds: int | None = None
    since: Time | None = None
    requested_by: str = ""
    message: str = ""
    attempts: int = 0
    allowed_at: Time | None = None
    """When it was allowed to go and stayed, since something else has refused it."""


def list_held_pods(policies: Iterable[GuardPolicy], pod: str = "") -> Sequence[HeldPodRow]:
    """The held pods by namespace and name, or those named ``pod``; without those that were released."""
    rows = [_row(policy, held) for policy in policies for held in policy.status.pods if _is_shown(held, pod)]
    return sorted(rows, key=lambda row: (row.namespace, row.name, row.uid))


def table_rows(rows: Iterable[HeldPodRow], now: datetime) -> Iterator[tuple[Sequence[str], str]]:
    """The cells below ``TITLES``, and the message."""
    for row in rows:
        cells = (
            row.namespace,
            row.name,
            row.state.value,
            f"{row.percent}%" if row.percent is not None else NONE,
            format_elapsed(row.eta_seconds) if row.eta_seconds is not None else NONE,
            format_age((now - row.since).total_seconds()) if row.since else NONE,
            row.policy,
            row.requested_by or NONE,
        )
        yield cells, _message(row)


def _message(row: HeldPodRow) -> str:
    if row.allowed_at and row.state is PreparationState.READY:
        return f"allowed at {row.allowed_at:%Y-%m-%dT%H:%M:%SZ}, and still there: something else refuses it"
    return row.message or NONE


def _is_shown(held: HeldPod, pod: str) -> bool:
    return held.state is not PreparationState.RELEASED and pod in ("", held.name)


def _row(policy: GuardPolicy, held: HeldPod) -> HeldPodRow:
    return HeldPodRow(
        namespace=policy.metadata.namespace,
        name=held.name,
        uid=held.uid,
        policy=policy.name,
        state=held.state,
        percent=held.percent,
        eta_seconds=held.eta_seconds,
        since=held.since,
        requested_by=held.requested_by,
        message=held.message,
        attempts=held.attempts,
        allowed_at=held.allowed_at,
    )
