"""What the agent does at the API server when its node is back from a shutdown."""

import logging

from lastcall.errors import ApiNotPermitted, Conflict, LastcallError, NotFound
from lastcall.graceful.cluster.leftovers import LeftoverFate, find_leftovers
from lastcall.graceful.cluster.node_announcement import NodeAnnouncement
from lastcall.graceful.cluster.node_changes import api_time
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownOutcome, ShutdownRecord
from lastcall.names import RETURN_EVENT
from lastcall.ports.cluster import NodeObjects, PodOwners
from lastcall.ports.node import Clock

RETRY_SECONDS = 5.0
"""Seconds between two attempts to undo what an earlier shutdown left."""

LOOK_SECONDS = 10.0
"""Seconds between two looks for leftovers that may be deleted."""

PATIENCE = 900.0
"""Seconds after which leftovers stay that were not replaced or counted: their controllers may not want to."""

log = logging.getLogger(__name__)


class AfterBoot:
    """Undoes and completes what the last shutdown left at the API server, as often as it takes."""

    def __init__(
        self, objects: NodeObjects, owners: PodOwners, announcement: NodeAnnouncement, *, clock: Clock
    ) -> None:
        self._objects = objects
        self._owners = owners
        self._announcement = announcement
        self._clock = clock
        self._failure = ""

    async def run(self, last: ShutdownRecord | None) -> None:
        """Undoes the changes of the Node; after a boot also writes an Event and deletes the leftovers of ``last``."""
        while not await self._is_undone():
            await self._clock.sleep(RETRY_SECONDS)
        if last is None or last.returned is None:
            return
        while not await self._is_told(last):
            await self._clock.sleep(RETRY_SECONDS)
        end = self._clock.boottime() + PATIENCE
        while not await self._are_leftovers_gone(last) and self._clock.boottime() < end:
            await self._clock.sleep(LOOK_SECONDS)

    async def _is_undone(self) -> bool:
        try:
            await self._announcement.undo()
        except LastcallError as error:
            return self._log_failure("the Node keeps what the last shutdown changed, trying again", error)
        return True

    async def _is_told(self, last: ShutdownRecord) -> bool:
        """Whether the Event is written, or never will be. Its name is that of the shutdown, so that there is one."""
        try:
            await self._objects.create_event(last.id, RETURN_EVENT, return_message(last))
        except ApiNotPermitted as error:
            self._log_failure("the return of the machine is not told by an Event", error)
        except LastcallError as error:
            return self._log_failure("the return of the machine is not told by an Event, trying again", error)
        return True

    async def _are_leftovers_gone(self, last: ShutdownRecord) -> bool:
        try:
            left = find_leftovers(await self._objects.list_pods(), last)
            waiting = [pod for pod, fate in left if not await self._is_deleted(pod, fate)]
        except ApiNotPermitted as error:
            self._log_failure("leftovers of the last shutdown stay", error)
            return True
        except LastcallError as error:
            return self._log_failure("leftovers of the last shutdown stay for now", error)
        return not waiting

    async def _is_deleted(self, pod: Pod, fate: LeftoverFate) -> bool:
        if fate is LeftoverFate.DELETED_WHEN_COUNTED:
            return False
        if fate is LeftoverFate.DELETED_WHEN_REPLACED and not await self._owners.has_all_replicas(pod):
            return False
        try:
            await self._objects.delete_pod(pod, 0)
        except (NotFound, Conflict):
            return True  # another pod has the name, or none
        log.info("%s is deleted, a leftover of the last shutdown (%s)", pod.key, pod.status.reason or pod.status.phase)
        return True

    def _log_failure(self, what: str, error: LastcallError) -> bool:
        text = f"{what}: {error}"
        if text != self._failure:
            log.warning("%s", text)
        self._failure = text
        return False


def return_message(last: ShutdownRecord) -> str:
    """The Event's message: when the machine went down, how, and what has come of its pods."""
    how = f" ({last.how})" if last.how else ""
    broke_off = ", which broke off" if last.outcome is ShutdownOutcome.INTERRUPTED else ""
    short = sum(pod.was_cut_short for pod in last.pods)
    cut = f", {short} of them cut short" if short else ""
    return f"The machine is back after its shutdown{how} at {api_time(last.wall)}{broke_off}: {last.pod_counts} pods ended{cut}"
