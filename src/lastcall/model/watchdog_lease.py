"""What a node's agent says of its watchdog in the Lease of its own (``lastcall-nodes``, by the node's name), pure.

One annotation says it all, as JSON: whether the device is armed, for which boot, and by which settings. While it says
so, the node resets itself by ``Watchdog.bound`` after the last renewal. So it says so only after the device was armed,
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
from lastcall.model.leadership import Record
from lastcall.model.watchdog import Watchdog
from lastcall.model.watchdog_peers import PeerTerms


class Promise(Facts, frozen=True, omit_defaults=True):
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
    def of(cls, boot_id: str, settings: Watchdog, peers: PeerTerms | None = None) -> Self:
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
    def settings(self) -> Watchdog | None:
        """Those by which it is armed; None if it is not, or if no bound follows from what is said."""
        if not self.armed or not self.boot_id:
            return None
        try:
            return Watchdog(
                lease=self.lease_seconds,
                pet=self.pet_seconds,
                timeout=self.timeout_seconds,
                drift=self.drift,
                peers=self.peers is not None,
            )
        except InvalidInput:
            return None


class LeaseMeta(Facts, frozen=True):
    """``metadata``, as far as it is read."""

    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class AgentLease(Facts, frozen=True):
    """The Lease as it was read."""

    metadata: LeaseMeta = LeaseMeta()
    spec: Record = Record()

    @property
    def promise(self) -> Promise | None:
        """What it says; None if nothing can be read there, by which nothing is promised."""
        return promised(self.metadata.annotations)


def promised(annotations: Mapping[str, str]) -> Promise | None:
    """What a Lease with these annotations says; None if nothing can be read there."""
    try:
        return msgspec.json.decode(annotations.get(names.WATCHDOG, ""), type=Promise)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def following(sequence: int, promise: Promise) -> Promise:
    """With the next one after the highest ``sequence`` that the writer knows to have stood there."""
    return msgspec.structs.replace(promise, sequence=sequence + 1)


def annotated(promise: Promise) -> dict[str, str]:
    """The annotations that say it."""
    return {names.WATCHDOG: msgspec.json.encode(promise).decode()}


def renewed(before: Record, *, node: str, lease: float, wall: float) -> Record:
    """The record by which ``node`` renews; ``wall`` (seconds since 1970) is for people alone.

    Its ``renew_time`` always differs from the one before: a write that changes nothing is no renewal.
    """
    now = _text(wall)
    if now == before.renew_time:
        now = _text(wall, later=1)
    return Record(
        holder_identity=node,
        lease_duration_seconds=max(1, math.ceil(lease)),
        acquire_time=before.acquire_time or now,
        renew_time=now,
        lease_transitions=before.lease_transitions or 0,
    )


def _text(wall: float, *, later: int = 0) -> str:
    """MicroTime, ``later`` microseconds after ``wall``."""
    moment = datetime.fromtimestamp(wall, UTC) + timedelta(microseconds=later)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
