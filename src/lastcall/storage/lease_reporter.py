"""The loop that reports the node's lease on shared storage. It reports faults of the service and waits them out."""

import logging

from lastcall.aio import timeout
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.duration import format_seconds
from lastcall.model.storage_lease import SanlockSettings, StorageRecord
from lastcall.ports.node import Clock
from lastcall.ports.storage import StorageLeases, StorageRecordWriter
from lastcall.storage.lease_record import storage_record

PERIOD = 10.0
"""Seconds between two reports: half of the time between two renewals of sanlock by default."""

AGAIN = 60.0
"""Seconds after which a write that an earlier process left in flight has arrived or failed.

kube-apiserver ends a request after one minute, unless its ``--request-timeout`` says otherwise.
"""

log = logging.getLogger(__name__)


async def retract_record(word: StorageRecordWriter, clock: Clock) -> None:
    """Removes the record that an agent with another configuration has left; returns when it is gone.

    A write of that agent may still be in flight and arrive later, so the record is removed once more after AGAIN.
    """
    await _clear_record(word, clock)
    await clock.sleep(AGAIN)
    await _clear_record(word, clock)


async def _clear_record(word: StorageRecordWriter, clock: Clock) -> None:
    said = ""
    while True:
        try:
            async with timeout(PERIOD / 2):
                return await word.clear_record()
        except (LastcallError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            level = logging.DEBUG if why == said else logging.WARNING
            log.log(level, "the record of a lease on shared storage could not be removed: %s", why)
            said = why
        await clock.sleep(PERIOD)


class StorageLeaseReporter:
    """Reports the lease. While the service is silent or the lockspace lost, the record says "unknown"."""

    def __init__(
        self, settings: SanlockSettings, *, leases: StorageLeases, word: StorageRecordWriter, clock: Clock, boot_id: str
    ) -> None:
        self._settings = settings
        self._leases = leases
        self._word = word
        self._clock = clock
        self._boot_id = boot_id
        self._said = self._complaint = ""

    async def run(self) -> None:
        """Reports until cancelled. The last record stays: the lease belongs to the service, not to this process."""
        while True:
            begun = self._clock.boottime()
            try:
                await self._write_record(await self._read_record())
            except Exception:
                log.exception("the lease on shared storage could not be reported")
            await self._clock.sleep(begun + PERIOD - self._clock.boottime())

    async def _read_record(self) -> StorageRecord:
        name = self._settings.lockspace
        try:
            found = await self._leases.read_lockspace(name)
        except Unavailable as error:
            return self._unknown_record(str(error))
        except Exception:
            log.exception("the lease on lockspace %s could not be read", name)
            return self._unknown_record("it could not be read")
        record = storage_record(self._boot_id, self._settings, found)
        bound = record.dead_after_seconds
        outcome = (
            f"it proves nothing: {record.why}"
            if bound is None
            else f"its loss resets this machine in {format_seconds(bound)}"
        )
        looks = (
            "" if found.looks else "; it was lost for a time, and does not show other hosts until this machine reboots"
        )
        self._log_change(f"held as host {found.host_id}, and {outcome}{looks}")
        return record

    def _unknown_record(self, why: str) -> StorageRecord:
        """A record without a lease, which replaces the last report."""
        self._log_change(f"it is unknown: {why}")
        return StorageRecord(boot_id=self._boot_id, why=why)

    async def _write_record(self, record: StorageRecord) -> None:
        """Writes the record within a period, so that its age is what it claims."""
        try:
            async with timeout(PERIOD / 2):
                await self._word.write_record(record)
        except (LastcallError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            level = logging.DEBUG if why == self._complaint else logging.WARNING
            log.log(level, "the lease on lockspace %s could not be reported: %s", self._settings.lockspace, why)
            self._complaint = why
        else:
            self._complaint = ""

    def _log_change(self, sentence: str) -> None:
        """Logs the sentence if it changed."""
        if sentence != self._said:
            log.info("lease on lockspace %s: %s", self._settings.lockspace, sentence)
            self._said = sentence
