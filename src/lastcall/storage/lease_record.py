"""Builds the agent's record of a lockspace that its node has joined (pure)."""

from collections.abc import Iterable

from lastcall.model.storage_lease import HostSeen, SanlockSettings, StorageRecord
from lastcall.ports.storage import Lockspace

MOST_SEEN = 16
"""The most hosts that one node reports. Up to 17 hosts report all others; with more, the total stays linear."""

_LONG = 3600.0
"""Seconds without a renewal after which a host is listed last: it may have left without releasing its host id."""


def doubt_about_reset(settings: SanlockSettings, found: Lockspace) -> str:
    """Why losing the lockspace may not reset the machine; empty if it certainly does.

    By itself sanlock only kills the processes that hold its leases. When they are gone it releases the watchdog, and
    the machine runs on. It keeps the watchdog if the lockspace is marked as used (``sanlock client set_config -s NAME
    -u 1``).
    """
    if not settings.resets_machine:
        return "storageLease.sanlock.resetsMachine is not set"
    if not found.watchdog:
        return "sanlock runs without a watchdog (use_watchdog=0)"
    if not found.used:
        return f"the lockspace is not marked as used (sanlock client set_config -s {settings.lockspace} -u 1)"
    return ""


def storage_record(boot_id: str, settings: SanlockSettings, found: Lockspace) -> StorageRecord:
    """The record of a lockspace that was read just now."""
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
    """The next hosts in the circle of host ids, so that every host is reported by the same number of others.

    Half of the places are for hosts that renewed within the last hour, so that unreleased ids cannot hide them. The
    other half includes nodes that died longer ago, whose death may still be unknown to the controller.
    """
    ordered = sorted(others, key=lambda one: (one.host_id < own, one.host_id))
    lately = [one for one in ordered if one.renewed_ago < _LONG][: MOST_SEEN // 2]
    return (*lately, *(one for one in ordered if one not in lately))[:MOST_SEEN]
