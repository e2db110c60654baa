"""The writes to one pod's object while its node shuts down, from its phase's beginning to its last status.

They run beside the pod's termination, which waits for none of them for long.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from lastcall.errors import (
    ApiFailure,
    ApiNotPermitted,
    Conflict,
    LastcallError,
    NotConnected,
    NotFound,
    RequestRefused,
    TooManyRequests,
)
from lastcall.graceful.cluster import pod_changes
from lastcall.graceful.cluster.pod_changes import ObjectFate
from lastcall.graceful.cluster.pod_volumes import VolumesEnd
from lastcall.graceful.cluster.server_contact import ServerContact
from lastcall.model.pods import Pod
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock

RETRY_SECONDS = 1.0
"""Seconds before a write is repeated that failed or had no answer."""


class PodDeparture:
    """One pod's writes.

    ``calls`` limits the writes of all pods at a time. ``note`` gets what the report shall say. ``contact`` is told
    of the server's answers.
    """

    def __init__(
        self,
        pod: Pod,
        objects: NodeObjects,
        *,
        calls: AbstractAsyncContextManager[None],
        clock: Clock,
        note: Callable[[str], None],
        contact: ServerContact,
    ) -> None:
        self._pod = pod
        self._objects = objects
        self._calls = calls
        self._clock = clock
        self._note = note
        self._contact = contact
        self._asked = False
        self._deleted = False
        self._is_gone = False
        self._begun = asyncio.Event()

    @property
    def key(self) -> str:
        """``namespace/name`` of the pod."""
        return self._pod.key

    @property
    def is_deleted(self) -> bool:
        """Whether the server has accepted the deletion: no kubelet starts the pod again."""
        return self._deleted or self._is_gone

    @property
    def is_being_deleted(self) -> bool:
        """Whether the pod's deletion has begun, or may have, and its object has not been removed."""
        return (self._deleted or self._asked) and not self._is_gone

    async def wait_until_begun(self) -> None:
        """Returns when the server has accepted or refused the pod's first write."""
        await self._begun.wait()

    async def begin(self, grace: float) -> None:
        """Deletes the pod with ``grace`` seconds, or makes it not ready if it keeps its object or the DELETE is refused."""
        try:
            if pod_changes.object_fate(self._pod) is ObjectFate.DELETED:
                if pod_changes.needs_disruption_target(self._pod):
                    await self._write(lambda: self._patch(pod_changes.disruption_patch(self._clock.wall())))
                await self._delete(pod_changes.deletion_grace(grace))
            await self._mark_not_ready()
        finally:
            self._begun.set()

    async def repeat(self) -> None:
        """Makes a pod that keeps its object not ready once more: a kubelet has written its own status."""
        await self._begun.wait()
        await self._mark_not_ready()

    async def finish(self, exit_codes: Mapping[str, int | None], volumes: Awaitable[VolumesEnd]) -> None:
        """Writes the last status of a deleted pod, whose containers have ended, and removes its object.

        The object stays if one of its ``volumes`` is not known to be unmounted.
        """
        await self._begun.wait()
        if not self._deleted or self._is_gone:
            return
        await self._write(lambda: self._patch(pod_changes.final_patch(self._pod, exit_codes, self._clock.wall())))
        if not (await volumes).are_free:
            self._note(f"the object of {self._pod.key} stays, because its volumes are not known to be unmounted")
        elif not self._is_gone and not await self._write(lambda: self._objects.delete_pod(self._pod, 0)):
            self._is_gone = True

    async def _mark_not_ready(self) -> None:
        if not self._deleted:
            await self._write(lambda: self._patch(pod_changes.not_ready_patch(self._clock.wall())))

    async def _delete(self, seconds: int) -> None:
        refusal = await self._write(lambda: self._try_delete(seconds))
        self._asked, self._deleted = False, refusal is None
        if refusal:
            cause = f"because of webhook {refusal.webhook}" if refusal.webhook else "which is refused"
            self._note(f"{self._pod.key} is ended without its deletion, {cause}: {refusal}")

    async def _try_delete(self, seconds: int) -> None:
        """Of any other error than these the outcome is not known, and a later attempt does not tell it."""
        asked_before, self._asked = self._asked, True
        try:
            await self._objects.delete_pod(self._pod, seconds)
        except (TooManyRequests, NotConnected):
            self._asked = asked_before
            raise

    async def _patch(self, patch: pod_changes.Patch) -> None:
        await self._objects.patch_pod_status(self._pod, patch)

    async def _write(self, call: Callable[[], Awaitable[None]]) -> ApiFailure | None:
        """Repeats a write until the server accepts it or refuses it for good; returns the refusal, or None."""
        while not self._is_gone:
            try:
                async with self._calls:
                    await call()
                self._contact.record_answer()
                break
            except Conflict:
                self._is_gone = True  # another pod has the name
            except (NotFound, ApiNotPermitted) as error:
                if self._contact.is_recovering and not error.is_by_webhook:
                    await self._clock.sleep(RETRY_SECONDS)
                elif isinstance(error, NotFound):
                    self._is_gone = True
                else:
                    return error
            except ApiFailure as error:
                if error.is_by_webhook or isinstance(error, RequestRefused):
                    return error
                await self._wait_for_retry(error)
            except LastcallError as error:
                await self._wait_for_retry(error)
        return None

    async def _wait_for_retry(self, error: LastcallError) -> None:
        self._contact.record_failure(error, f"{self._pod.key} is not announced")
        await self._clock.sleep(RETRY_SECONDS)
