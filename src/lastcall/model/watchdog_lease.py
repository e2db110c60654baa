"""What a node's agent says of its watchdog in the Lease of its own (``lastcall-nodes``, by the node's name), pure.

One annotation says it all, as JSON: whether the device is armed, for which boot, and by which settings. While it says
so, the node resets itself by ``WatchdogTiming.bound`` after the last renewal. So it says so only after the device was armed,
and no longer before the device is disarmed.
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
    """Seconds. With ``armed``: this boot resets itself by the bound that follows from the settings."""

    boot_id: str = msgspec.field(name="bootID")
    armed: bool = False
    lease_seconds: float = 0.0
    pet_seconds: float = 0.0
    timeout_seconds: float = 0.0
    """As the driver reports it."""
    drift: float = 0.0
    why: str = ""
    """Why it is not armed, for people."""
    peers: PeerTerms | None = None
    """With it the bound begins later: when too few nodes can have agreed to let this one live on."""
    sequence: int = 0
    """One more than the highest that the writer knew to have stood there before."""

    @classmethod
    def from_timing(cls, boot_id: str, settings: WatchdogTiming, peers: PeerTerms | None = None) -> Self:
        """That the device is armed with these."""
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
        """Those by which it is armed; None if it is not, or if no bound follows from what is said."""
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
    """``metadata``, as far as it is read."""

    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class AgentLease(Facts, frozen=True):
    """The Lease as it was read."""

    metadata: AgentLeaseMeta = AgentLeaseMeta()
    spec: LeaseRecord = LeaseRecord()

    @property
    def promise(self) -> WatchdogPromise | None:
        """What it says; None if nothing can be read there, by which nothing is promised."""
        return parse_promise(self.metadata.annotations)


def parse_promise(annotations: Mapping[str, str]) -> WatchdogPromise | None:
    """What a Lease with these annotations says; None if nothing can be read there."""
    try:
        return msgspec.json.decode(annotations.get(names.WATCHDOG, ""), type=WatchdogPromise)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def with_next_sequence(sequence: int, promise: WatchdogPromise) -> WatchdogPromise:
    """With the next one after the highest ``sequence`` that the writer knows to have stood there."""
    return msgspec.structs.replace(promise, sequence=sequence + 1)


def to_annotations(promise: WatchdogPromise) -> dict[str, str]:
    """The annotations that say it."""
    return {names.WATCHDOG: msgspec.json.encode(promise).decode()}


def renewal_record(before: LeaseRecord, *, node: str, lease: float, wall: float) -> LeaseRecord:
    """The record by which ``node`` renews; ``wall`` (seconds since 1970) is for people alone.

    Its ``renew_time`` always differs from the one before: a write that changes nothing is no renewal.
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
