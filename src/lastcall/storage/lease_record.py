"""What the agent tells of a lockspace that its node has joined (pure)."""

from collections.abc import Iterable

from lastcall.model.storage_lease import HostSeen, SanlockSettings, StorageRecord
from lastcall.ports.storage import Lockspace

MOST_SEEN = 16
"""Of so many hosts each node tells. With up to 17 hosts that is all others; else it keeps what all tell together linear."""

_LONG = 3600.0
"""Seconds without a renewal after which a host may be one that never gave its id back."""


def doubt_about_reset(settings: SanlockSettings, found: Lockspace) -> str:
    """Why the loss of the lockspace is not known to reset the machine; empty if it does.

    sanlock alone kills the processes that hold its leases, and when they are gone it lets go of the watchdog: the machine
    runs on. It does not while the lockspace is marked as used (``sanlock client set_config -s NAME -u 1``).
    """
    if not settings.resets_machine:
        return "storageLease.sanlock.resetsMachine is not set"
    if not found.watchdog:
        return "sanlock runs without a watchdog (use_watchdog=0)"
    if not found.used:
        return f"the lockspace is not marked as used (sanlock client set_config -s {settings.lockspace} -u 1)"
    return ""


def storage_record(boot_id: str, settings: SanlockSettings, found: Lockspace) -> StorageRecord:
    """The record of a lockspace as it was found just now."""
    why = doubt_about_reset(settings, found)
    return StorageRecord(
        boot_id=boot_id,
        lockspace=settings.lockspace,
        host_id=found.host_id,
        generation=found.generation,
        owner=found.owner,
        timestamp=found.timestamp,
        dead_after_seconds=None if why else found.dead_after,
        interval_seconds=found.interval,
        why=why,
        seen=neighbour_hosts(found.host_id, found.others),
    )


def neighbour_hosts(own: int, others: Iterable[HostSeen]) -> tuple[HostSeen, ...]:
    """Those that come next in the circle of host ids, so that each host is told of by as many as any other.

    Half of the places are for hosts that have renewed within the hour: ids that were never given back hide none of them, and
    the other half tells also of nodes that died longer ago, which no controller may have known to be over yet.
    """
    ordered = sorted(others, key=lambda one: (one.host_id < own, one.host_id))
    lately = [one for one in ordered if one.renewed_ago < _LONG][: MOST_SEEN // 2]
    return (*lately, *(one for one in ordered if one not in lately))[:MOST_SEEN]
