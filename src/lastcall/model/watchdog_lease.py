"""An agent's record of its watchdog in its own Lease (namespace ``lastcall-nodes``, named like the node) (pure).

One annotation holds it as JSON: whether the device is armed, for which boot, and with which settings. While it says
``armed``, the node resets itself within ``WatchdogTiming.reset_bound`` of the last renewal. It therefore says so only
after the device was armed, and stops saying so before the device is disarmed.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Self

import msgspec

from lastcall import names
from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.leadership import LeaseRecord
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_peers import PeerTerms


class WatchdogPromise(Facts, frozen=True, omit_defaults=True):
    """Times are seconds. With ``armed``, this boot resets itself within the bound that the settings give."""

    boot_id: str = msgspec.field(name="bootID")
    armed: bool = False
    lease_seconds: float = 0.0
    pet_seconds: float = 0.0
    timeout_seconds: float = 0.0
    """The timeout as the driver reports it."""
    drift: float = 0.0
    why: str = ""
    """Why it is not armed, for people."""
    peers: PeerTerms | None = None
    """If set, the bound starts later: when too few nodes can have agreed to keep this one alive."""
    sequence: int = 0
    """One more than the highest sequence that the writer knew of."""

    @classmethod
    def from_timing(cls, boot_id: str, settings: WatchdogTiming, peers: PeerTerms | None = None) -> Self:
        """The promise that the device is armed with this timing."""
        return cls(
            boot_id=boot_id,
            armed=True,
            lease_seconds=settings.lease,
            pet_seconds=settings.pet,
            timeout_seconds=settings.timeout,
            drift=settings.drift,
            peers=peers,
        )

    @property
    def armed_timing(self) -> WatchdogTiming | None:
        """The timing of an armed watchdog; None if it is not armed, or if its settings give no bound."""
        if not self.armed or not self.boot_id:
            return None
        try:
            return WatchdogTiming(
                lease=self.lease_seconds,
                pet=self.pet_seconds,
                timeout=self.timeout_seconds,
                drift=self.drift,
                peers=self.peers is not None,
            )
        except InvalidInput:
            return None


class AgentLeaseMeta(Facts, frozen=True):
    """``metadata``, as far as needed."""

    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class AgentLease(Facts, frozen=True):
    """The Lease as read."""

    metadata: AgentLeaseMeta = AgentLeaseMeta()
    spec: LeaseRecord = LeaseRecord()

    @property
    def promise(self) -> WatchdogPromise | None:
        """The promise in the Lease; None if there is no readable one, which promises nothing."""
        return parse_promise(self.metadata.annotations)


def parse_promise(annotations: Mapping[str, str]) -> WatchdogPromise | None:
    """The promise in a Lease's annotations; None if there is no readable one."""
    try:
        return msgspec.json.decode(annotations.get(names.WATCHDOG, ""), type=WatchdogPromise)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def with_next_sequence(sequence: int, promise: WatchdogPromise) -> WatchdogPromise:
    """The promise with the number that follows ``sequence``, the highest one that the writer knows of."""
    return msgspec.structs.replace(promise, sequence=sequence + 1)


def to_annotations(promise: WatchdogPromise) -> dict[str, str]:
    """The annotations that hold the promise."""
    return {names.WATCHDOG: msgspec.json.encode(promise).decode()}


def renewal_record(before: LeaseRecord, *, node: str, lease: float, wall: float) -> LeaseRecord:
    """The record with which ``node`` renews; ``wall`` (seconds since 1970) is informational.

    Its ``renew_time`` always differs from the previous one: an update without a change is no renewal.
    """
    now = _format_micro_time(wall)
    if now == before.renew_time:
        now = _format_micro_time(wall, later=1)
    return LeaseRecord(
        holder_identity=node,
        lease_duration_seconds=max(1, math.ceil(lease)),
        acquire_time=before.acquire_time or now,
        renew_time=now,
        lease_transitions=before.lease_transitions or 0,
    )


def _format_micro_time(wall: float, *, later: int = 0) -> str:
    """MicroTime, ``later`` microseconds after ``wall``."""
    moment = datetime.fromtimestamp(wall, UTC) + timedelta(microseconds=later)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
