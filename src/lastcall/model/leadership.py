"""Leader election by a Lease (pure): a candidate's next step, given the lease as read and a monotonic clock.

The rules are those of client-go's ``tools/leaderelection``, whose candidates can share a Lease with ours. A holder
renews. Another candidate takes over if the record has not changed for its whole duration since **that candidate** first
observed it. No candidate compares its own clock with the times in the record, which are informational.

Three rules are stricter, because our leader switches machines off:

- A leader may act until ``renew`` seconds after it **sent** its last confirmed renewal. Other candidates count from
  when they read the renewal, which is later, and ``lease`` is longer. Actions under way can end between the two.
- Any change of the object counts as a change of the record: the resourceVersion is compared, not the fields. A duration
  in the record that is shorter than our own is ignored.
- A missing Lease may have been deleted under a leader. A candidate that does not lead creates it with ``VACANT`` as its
  holder, and waits like the others; the leader takes it back at once.

If a person empties ``holderIdentity``, that states that the leader no longer acts, and candidates trust it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts

JITTER = 1.2
"""Candidates pause between ``retry`` and ``retry * (1 + JITTER)`` seconds (client-go: JitterFactor)."""

VACANT = "vacant"
"""The holder of a recreated Lease: no candidate, for as long as the previous holder might still act."""

NEVER = float("-inf")
"""``leading_until`` of a candidate that does not lead."""


@dataclass(frozen=True, kw_only=True)
class ElectionTerms:
    """Election times in seconds; the defaults are those of Kubernetes' components. InvalidInput if they conflict."""

    lease: int = 15
    """How long other candidates wait after the last renewal that they observed."""
    renew: float = 10.0
    """How long a leader may act after it sent a renewal."""
    retry: float = 2.0
    """The time between two attempts."""

    def __post_init__(self) -> None:
        wrong = []
        if self.retry <= 0:
            wrong.append(f"retry: {self.retry:g}: must be more than 0 s")
        if self.renew <= self.retry * JITTER:
            wrong.append(f"renew: {self.renew:g}: must be more than {JITTER:g} times retry ({self.retry:g} s)")
        if self.lease <= self.renew:
            wrong.append(f"lease: {self.lease}: must be more than renew ({self.renew:g} s)")
        if wrong:
            raise InvalidInput("leader election", wrong)


class LeaseRecord(Facts, frozen=True):
    """``spec`` of a Lease (coordination.k8s.io/v1); times are text as the API writes it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseVersion(Facts, frozen=True):
    """``metadata`` of a Lease, as far as needed."""

    resource_version: str = ""


class ElectionLease(Facts, frozen=True):
    """A Lease as read."""

    metadata: LeaseVersion
    spec: LeaseRecord = LeaseRecord()

    @property
    def holder(self) -> str:
        """The holder's identity; empty if the Lease was released."""
        return self.spec.holder_identity or ""


@dataclass(frozen=True)
class ObservedLease:
    """A lease (None: missing), unchanged since ``since``: when the response arrived, on our monotonic clock."""

    lease: ElectionLease | None
    since: float


class ElectionStep(Enum):
    """A candidate's next step."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    MAKE = "make"
    """The Lease is missing: create one with the holder VACANT."""
    WAIT = "wait"
    LOST = "lost"
    """The candidate has led, and may not act any more."""


def observe_lease(before: ObservedLease | None, lease: ElectionLease | None, now: float) -> ObservedLease:
    """The observation after a read whose response arrived at ``now``."""
    if before and before.lease and lease and before.lease.metadata == lease.metadata:
        return before
    return ObservedLease(lease, now)


def decide(
    seen: ObservedLease, *, identity: str, leading_until: float, terms: ElectionTerms, now: float
) -> ElectionStep:
    """The next step. ``identity`` is unique to this process; ``leading_until`` is NEVER for a waiting candidate."""
    holder = seen.lease.holder if seen.lease else VACANT
    if leading_until > NEVER:
        return ElectionStep.RENEW if now < leading_until and holder in ("", VACANT, identity) else ElectionStep.LOST
    if seen.lease is None:
        return ElectionStep.MAKE
    if holder in ("", identity):
        return ElectionStep.ACQUIRE  # released, or still ours: a write's response was lost, or no candidate took over
    return ElectionStep.ACQUIRE if now >= takeover_at(seen, terms) else ElectionStep.WAIT


def takeover_at(seen: ObservedLease, terms: ElectionTerms) -> float:
    """When another candidate's lease may be taken over if it is not renewed."""
    duration = seen.lease.spec.lease_duration_seconds if seen.lease else None
    return seen.since + max(duration or 0, terms.lease)


def holder_record(lease: ElectionLease | None, *, identity: str, terms: ElectionTerms, wall: float) -> LeaseRecord:
    """The record with which ``identity`` takes or keeps the lease; ``wall`` (seconds since 1970) is informational.

    Its ``renew_time`` differs from the previous one even if the wall clock was set back: an update without a change is
    no renewal.
    """
    before = lease.spec if lease else LeaseRecord()
    ours = before.holder_identity == identity
    now = _format_micro_time(wall)
    if now == before.renew_time:
        now = _format_micro_time(wall, later=1)
    transitions = before.lease_transitions or 0
    return LeaseRecord(
        holder_identity=identity,
        lease_duration_seconds=terms.lease,
        acquire_time=before.acquire_time if ours and before.acquire_time else now,
        renew_time=now,
        lease_transitions=transitions if ours or lease is None else transitions + 1,
    )


def vacant_record(*, terms: ElectionTerms, wall: float) -> LeaseRecord:
    """The record of a Lease that a candidate recreates without leading."""
    now = _format_micro_time(wall)
    return LeaseRecord(
        holder_identity=VACANT,
        lease_duration_seconds=terms.lease,
        acquire_time=now,
        renew_time=now,
        lease_transitions=0,
    )


def release_record(lease: ElectionLease, *, wall: float) -> LeaseRecord:
    """The record with which the holder releases the lease; another candidate takes it at its next read."""
    now = _format_micro_time(wall)
    return LeaseRecord(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time=now,
        renew_time=now,
        lease_transitions=lease.spec.lease_transitions or 0,
    )


def _format_micro_time(wall: float, *, later: int = 0) -> str:
    """MicroTime, ``later`` microseconds after ``wall``."""
    moment = datetime.fromtimestamp(wall, UTC) + timedelta(microseconds=later)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
