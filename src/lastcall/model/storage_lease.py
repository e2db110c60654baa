"""What a node's agent says of the node's lease on shared storage, in the Lease of its own (``lastcall-nodes``), pure.

One annotation says it all, as JSON: which lease the node holds, for which boot, after how long without a renewal its machine
has been reset, and what this node has read of the leases of others. Ages are those of the moment of writing.
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
    """Its name, as in ``sanlock client status``: no space and no colon, which the command takes for something else."""
    resets_machine: bool = False
    """The administrator's word that the loss of the lockspace resets this machine for as long as it is a member of it."""


class StorageLeaseSettings(Facts, frozen=True):
    """``storageLease`` of an AgentConfiguration."""

    sanlock: SanlockSettings


class HostSeen(Facts, frozen=True):
    """The lease of one host, as another host has read it from the storage. Another generation or owner is another lease."""

    host_id: Annotated[int, Meta(ge=1)] = msgspec.field(name="hostID")
    generation: _Number
    owner: str
    timestamp: _Number
    """What its holder wrote at the last renewal that was read: seconds on its own clock, which is monotonic."""
    renewed_ago: _Age
    """Seconds since the reader first read this timestamp."""
    looked_ago: _Age
    """So many seconds ago at most the last look that read it began."""


class StorageRecord(Facts, frozen=True, omit_defaults=True):
    """The lease that this boot of the node holds; without a ``lockspace`` it is not known to hold any."""

    boot_id: str = msgspec.field(name="bootID")
    lockspace: str = ""
    host_id: _Number = msgspec.field(name="hostID", default=0)
    generation: _Number = 0
    owner: str = ""
    timestamp: _Number = 0
    """Of a renewal of its own that it has read from the storage: who reads an earlier one reads something else."""
    dead_after_seconds: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """So long after a renewal a watchdog has reset the machine, if none follows; None if nobody can say so."""
    interval_seconds: _Age = 0.0
    """Between two looks of this node at the storage, if none is late."""
    why: str = ""
    """Why nothing follows from its lease, for people."""
    seen: tuple[HostSeen, ...] = ()


def parse_record(annotations: Mapping[str, str]) -> StorageRecord | None:
    """What a Lease with these annotations says; None if nothing can be read there."""
    try:
        return msgspec.json.decode(annotations.get(names.STORAGE_LEASE, ""), type=StorageRecord)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def to_annotations(record: StorageRecord) -> dict[str, str]:
    """The annotations that say it."""
    return {names.STORAGE_LEASE: msgspec.json.encode(record).decode()}
