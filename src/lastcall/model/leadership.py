"""Who leads, by a Lease (pure): what a candidate does next, given the lease as it was read and a monotonic clock.

The rules are those of client-go's ``tools/leaderelection``, whose candidates can share a Lease with ours: a holder
renews; who does not hold takes over when the record has not changed for its whole duration since **he** has seen it
first. No candidate compares a clock of its own with the times in the record: they are written for people.

Three things are stricter, because our leader switches machines off:

- A leader may act until ``renew`` seconds after it has **sent** its last renewal that was confirmed. Others count from
  when they have read it, which is later, and ``lease`` is longer: between the two, what is under way can end.
- Any change of the object counts as one of the record (its resourceVersion, not its fields, is compared), and a
  duration in the record that is shorter than one's own is not believed.
- A Lease that is missing may have been deleted under a leader. Who does not lead makes it anew with ``VACANT`` as its
  holder, and waits like the others; the leader takes it back at once.

Who empties ``holderIdentity`` by hand says that the leader acts no more, and is believed.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts

JITTER = 1.2
"""Candidates pause between ``retry`` and ``retry * (1 + JITTER)`` seconds (client-go: JitterFactor)."""

VACANT = "vacant"
"""The holder of a Lease that was made anew: nobody, for as long as a leader might still act who held it before."""

NEVER = float("-inf")
"""``leading_until`` of who does not lead."""


@dataclass(frozen=True, kw_only=True)
class ElectionTerms:
    """Seconds, by default those of Kubernetes' own components. InvalidInput if they do not fit together."""

    lease: int = 15
    """How long others wait after the last renewal that they have seen."""
    renew: float = 10.0
    """How long after a renewal a leader may act."""
    retry: float = 2.0
    """Between two attempts."""

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
    """``metadata`` of a Lease, as far as it is read."""

    resource_version: str = ""


class ElectionLease(Facts, frozen=True):
    """A Lease as it was read."""

    metadata: LeaseVersion
    spec: LeaseRecord = LeaseRecord()

    @property
    def holder(self) -> str:
        """Who holds it; empty if it was released."""
        return self.spec.holder_identity or ""


@dataclass(frozen=True)
class ObservedLease:
    """A lease (None: there is none), unchanged since ``since``: when its answer had come, on our monotonic clock."""

    lease: ElectionLease | None
    since: float


class ElectionStep(Enum):
    """What a candidate does next."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    MAKE = "make"
    """There is no Lease: one that is VACANT is made."""
    WAIT = "wait"
    LOST = "lost"
    """It has led, and may not act any more."""


def observe_lease(before: ObservedLease | None, lease: ElectionLease | None, now: float) -> ObservedLease:
    """What is known after a look whose answer came at ``now``."""
    if before and before.lease and lease and before.lease.metadata == lease.metadata:
        return before
    return ObservedLease(lease, now)


def decide(
    seen: ObservedLease, *, identity: str, leading_until: float, terms: ElectionTerms, now: float
) -> ElectionStep:
    """``identity`` is this candidate's alone, and another in each of its lives; ``leading_until`` NEVER if it waits."""
    holder = seen.lease.holder if seen.lease else VACANT
    if leading_until > NEVER:
        return ElectionStep.RENEW if now < leading_until and holder in ("", VACANT, identity) else ElectionStep.LOST
    if seen.lease is None:
        return ElectionStep.MAKE
    if holder in ("", identity):
        return ElectionStep.ACQUIRE  # released; or ours by a write whose answer was lost, or because nobody took over
    return ElectionStep.ACQUIRE if now >= takeover_at(seen, terms) else ElectionStep.WAIT


def takeover_at(seen: ObservedLease, terms: ElectionTerms) -> float:
    """When a lease that another one holds may be taken, if it is not renewed."""
    told = seen.lease.spec.lease_duration_seconds if seen.lease else None
    return seen.since + max(told or 0, terms.lease)


def holder_record(lease: ElectionLease | None, *, identity: str, terms: ElectionTerms, wall: float) -> LeaseRecord:
    """The record by which ``identity`` takes or keeps the lease; ``wall`` (seconds since 1970) is for people alone.

    Its ``renew_time`` differs from the one before even if the wall clock has been set back to it: a write that changes
    nothing is no renewal.
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
    """The record of a Lease that is made anew by who does not lead."""
    now = _format_micro_time(wall)
    return LeaseRecord(
        holder_identity=VACANT,
        lease_duration_seconds=terms.lease,
        acquire_time=now,
        renew_time=now,
        lease_transitions=0,
    )


def release_record(lease: ElectionLease, *, wall: float) -> LeaseRecord:
    """The record by which its holder says that it acts no more: the next look of another takes it."""
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
