"""Keeps the delay lock beyond the agent's container, by two services that the host's systemd runs during a shutdown.

A container's end ends all its processes, also the lock's holder. logind would let the machine go down at once, and no
kubelet would restart the container, because the agent has stopped it. systemd on the host is not affected, and the agent
in the pod reaches it over the bus. It creates both services when the shutdown begins:

- ``lastcall-lock.service`` sleeps and has a copy of the lock, as its standard output, until the deadline.
- ``lastcall-resume.service`` reads a pipe whose other end only the container has. At the end of file it starts the
  kubelet, which restarts the container; the agent in it resumes the shutdown from the journal.

Both need ``/bin/sh`` on the host, and ``sleep`` and ``systemctl`` in systemd's path.
"""

import asyncio
import logging
import math
import os
from collections.abc import Mapping

from lastcall.adapters.host.supervisor import PIPE_VARIABLE
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError, Unavailable
from lastcall.names import HOST_LOCK, HOST_RESUME
from lastcall.ports.node import Clock
from lastcall.ports.units import OpenServices

_RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class HostLockKeeper:
    """``ports.node.LockKeeper`` of an agent in a pod: a holder process in its container, and two services outside.

    ``kubelet_unit`` is the unit that restarts the container; "" if nothing stops it. ``pipe`` is the reading end of a pipe
    that ends with the container.
    """

    def __init__(
        self, inside: HolderProcessKeeper, clock: Clock, open_services: OpenServices, *, kubelet_unit: str, pipe: int
    ) -> None:
        self._inside = inside
        self._clock = clock
        self._open_services = open_services
        self._kubelet_unit = kubelet_unit
        self._pipe = pipe
        self._may_exist = True
        """Whether the services may exist; at first an earlier container may have left them."""
        self._host_holds = False
        self._host_deadline: float | None = None
        """The deadline of the host's copy; None if this process has not set it."""
        self._work: asyncio.Task[None] | None = None

    @property
    def is_held(self) -> bool:
        """Whether a lock is held now, by this container or by the host for an earlier one."""
        return self._inside.is_held or self._host_holds

    async def recover(self) -> bool:
        """Takes back the lock from an earlier process of this container; True also if the host holds one."""
        await self._inside.recover()
        try:
            async with self._open_services() as systemd:
                self._host_holds = await systemd.is_running(HOST_LOCK)
                self._may_exist = self._host_holds or await systemd.is_running(HOST_RESUME)
        except LastcallError as error:
            log.debug("whether %s runs is not known: %s", HOST_LOCK, error)
        return self.is_held

    async def keep_lock(self, descriptor: int) -> None:
        """Keeps the new lock inside the container; the services of an earlier shutdown are ended."""
        await self._inside.keep_lock(descriptor)
        try:
            await self._end_services()
        except LastcallError as error:
            log.warning("the lock of an earlier shutdown is still held by %s: %s", HOST_LOCK, error)

    async def set_deadline(self, boottime: float) -> None:
        """Sets it inside, and has the host keep copies until then; this does not wait for the host."""
        await self._inside.set_deadline(boottime)
        await self._stop_work()
        self._may_exist = True
        self._work = asyncio.create_task(self._start_services(boottime), name="the host's copy of the lock")

    async def release(self) -> None:
        """Ends the services, then closes the copies inside. Raises Unavailable if a service is not known to be gone."""
        await self._end_services()
        await self._inside.release()

    async def _start_services(self, deadline: float) -> None:
        """Tries until both exist; logs the first failure."""
        logged = False
        while self._clock.boottime() < deadline:
            try:
                return await self._try_to_start(deadline)
            except Exception as error:  # a bug of ours, too, must not keep pods from being ended
                if not logged:
                    log.warning("the lock would not survive the container: %s", error)
                logged = True
            await self._clock.sleep(_RETRY_SECONDS)
        return None

    async def _try_to_start(self, deadline: float) -> None:
        async with self._open_services() as systemd:
            if self._inside.descriptor is not None and self._host_deadline != deadline:
                await systemd.end_services(HOST_LOCK)  # a service's own limit cannot be changed
                seconds = deadline - self._clock.boottime()
                await systemd.start_service(
                    HOST_LOCK,
                    command=["/bin/sh", "-c", f"exec sleep {math.ceil(seconds) + 1}"],
                    description="Holds lastcall's delay lock while the node's pods end",
                    stdout=self._inside.descriptor,
                    seconds=seconds,
                )
                self._host_holds, self._host_deadline = True, deadline
            if self._kubelet_unit:
                await systemd.start_service(
                    HOST_RESUME,
                    command=["/bin/sh", "-c", 'read _; exec systemctl --no-block start "$0"', self._kubelet_unit],
                    description=f"Starts {self._kubelet_unit} if the container of lastcall's agent ends",
                    stdin=self._pipe,
                )

    async def _end_services(self) -> None:
        await self._stop_work()
        if not self._may_exist:
            return
        try:
            async with self._open_services() as systemd:
                await systemd.end_services(HOST_RESUME, HOST_LOCK)
        except LastcallError as error:
            raise Unavailable(f"systemd does not end {HOST_LOCK}: {error}") from error
        self._may_exist = self._host_holds = False
        self._host_deadline = None

    async def _stop_work(self) -> None:
        if self._work:
            await cancel_and_wait(self._work)
            self._work = None


def container_pipe(environ: Mapping[str, str] = os.environ) -> int:
    """The reading end of a pipe that ends with the container: the supervisor's, else one that ends with this process."""
    inherited = environ.get(PIPE_VARIABLE, "")
    if not inherited.isdecimal():
        return os.pipe()[0]
    os.set_inheritable(int(inherited), False)
    return int(inherited)
