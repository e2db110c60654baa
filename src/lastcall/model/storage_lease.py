"""An agent's record of its node's lease on shared storage, in its own Lease (namespace ``lastcall-nodes``) (pure).

One annotation holds it as JSON: the lease that the node holds, for which boot, how long after the last renewal its
machine has been reset, and the leases of other hosts as this node read them. Ages are as of the time of writing.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from lastcall import names
from lastcall.model.base import Facts

_Age = Annotated[float, Meta(ge=0, le=1e9)]
_Number = Annotated[int, Meta(ge=0)]


class SanlockSettings(Facts, frozen=True):
    """``storageLease.sanlock`` of an AgentConfiguration."""

    lockspace: Annotated[str, Meta(min_length=1, max_length=48, pattern=r"^[!-9;-~]*\Z")]
    """Its name, as in ``sanlock client status``: no space and no colon, which the command interprets differently."""
    resets_machine: bool = False
    """The administrator's statement that losing the lockspace resets this machine while it is a member."""


class StorageLeaseSettings(Facts, frozen=True):
    """``storageLease`` of an AgentConfiguration."""

    sanlock: SanlockSettings


class HostSeen(Facts, frozen=True):
    """One host's lease, as another host read it from the storage. Another generation or owner is another lease."""

    host_id: Annotated[int, Meta(ge=1)] = msgspec.field(name="hostID")
    generation: _Number
    owner: str
    timestamp: _Number
    """The holder's value at the last renewal that was read: seconds on the holder's own monotonic clock."""
    renewed_ago: _Age
    """Seconds since the reader first read this timestamp."""
    looked_ago: _Age
    """Seconds since the latest read of it began, at most."""


class StorageRecord(Facts, frozen=True, omit_defaults=True):
    """The lease that this boot of the node holds; without a ``lockspace`` the node is not known to hold one."""

    boot_id: str = msgspec.field(name="bootID")
    lockspace: str = ""
    host_id: _Number = msgspec.field(name="hostID", default=0)
    generation: _Number = 0
    owner: str = ""
    timestamp: _Number = 0
    """Of one of its own renewals, as read from the storage: a reader with an earlier one reads another storage."""
    dead_after_seconds: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Seconds after a renewal by which a watchdog has reset the machine if no other follows; None if unknown."""
    interval_seconds: _Age = 0.0
    """Seconds between two reads of the storage by this node, if none is late."""
    why: str = ""
    """Why the lease proves nothing, for people."""
    seen: tuple[HostSeen, ...] = ()


def parse_record(annotations: Mapping[str, str]) -> StorageRecord | None:
    """The record in a Lease's annotations; None if there is no readable one."""
    try:
        return msgspec.json.decode(annotations.get(names.STORAGE_LEASE, ""), type=StorageRecord)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def to_annotations(record: StorageRecord) -> dict[str, str]:
    """The annotations that hold the record."""
    return {names.STORAGE_LEASE: msgspec.json.encode(record).decode()}
