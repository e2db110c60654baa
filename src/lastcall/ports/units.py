"""Ports to the machine's service manager: states of units, starting, stopping; a timer, a command, services."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lastcall.model.base import Facts

_SIGNALLED = ("stop-sigterm", "stop-sigkill", "stop-post", "final-watchdog", "final-sigterm", "final-sigkill")
"""SubStates of a service that is stopped (systemd's unit-def.c), from its signal on."""


class UnitState(Facts, frozen=True):
    """A unit's LoadState ("loaded", "not-found" ...), ActiveState ("active", "inactive" ...) and SubState.

    The SubState is empty if it is not known.
    """

    load: str
    active: str
    sub: str = ""

    @property
    def is_at_rest(self) -> bool:
        """Whether the unit neither runs nor is about to run, unless a job for it is queued."""
        return self.active in ("inactive", "failed")

    @property
    def has_stop_signal(self) -> bool:
        """Whether a service's processes have got the signal that ends them, or there are none.

        Not while ``ExecStop=`` commands run ("stop"), which come before it.
        """
        return self.is_at_rest or (self.active == "deactivating" and self.sub in _SIGNALLED)


class Units(Protocol):
    """The units of systemd. Every method raises Unavailable if it does not answer or refuses."""

    async def unit_states(self, *names: str) -> list[UnitState]:
        """The states of the units, in this order; also of units that do not exist."""
        ...

    async def start_unit(self, name: str) -> None:
        """Returns when the job is queued, not when the unit runs."""
        ...

    async def stop_unit(self, name: str) -> None:
        """Returns when the job is queued."""
        ...

    async def start_timer(self, name: str, *, seconds: float, starts: str, description: str) -> None:
        """Creates a timer unit ``name``.timer that starts the unit ``starts`` once, after so many seconds.

        The timer depends on the service manager alone. It is gone when it has elapsed, and when the machine goes down.
        Unavailable also while such a timer exists.
        """
        ...

    async def run_command(self, name: str, command: Sequence[str], *, description: str) -> None:
        """Starts a program once, as the transient service ``name``, with the machine's own mounts.

        Returns when the job is queued. ``command`` begins with the program's absolute path. Unavailable also while such
        a service exists.
        """
        ...


class TransientServices(Protocol):
    """Services that the service manager runs for this program, and that outlive it. Unavailable if it does not answer."""

    async def is_running(self, name: str) -> bool:
        """Whether the unit runs, starts or ends."""
        ...

    async def start_service(
        self,
        name: str,
        *,
        command: Sequence[str],
        description: str,
        stdin: int | None = None,
        stdout: int | None = None,
        seconds: float | None = None,
    ) -> bool:
        """Creates and starts a service, with duplicates of these descriptors as its standard input and output.

        It is stopped after so many seconds, and gone when it has ended. False if there is a unit of this name.
        """
        ...

    async def end_services(self, *names: str) -> None:
        """Stops the services; returns when they are gone, and with them the duplicates of their descriptors.

        TimedOut if one is still there.
        """
        ...


OpenServices = Callable[[], AbstractAsyncContextManager[TransientServices]]
"""Connects to the service manager. Unavailable if it cannot be reached."""

OpenUnits = Callable[[], AbstractAsyncContextManager[Units]]
"""Connects to the service manager. Unavailable if it cannot be reached."""
