"""A machine's systemd in virtual time: the kubelet's unit, and the timer that starts it again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from lastcall.errors import Unavailable
from lastcall.names import KUBELET_TIMER
from lastcall.ports.node import Clock
from lastcall.ports.units import Units, UnitState
from lastcall_lab.virtual import VirtualProcess

KUBELET_UNIT = "kubelet.service"

STOP_SECONDS = 0.05
"""From the job to the kubelet's end; 0.02 to 0.1 were measured."""

RESTART_SECONDS = 10.0
"""RestartSec of the kubelet's unit, as kubeadm ships it: from its death to its next life."""

_CALL_SECONDS = 0.001


class SimulatedServiceManager:
    """``ports.units.Units`` of one boot of a machine; it outlives the programs that call it.

    ``run_kubelet`` begins a life of the kubelet. ``check_bus`` raises Unavailable while there is no bus. ``tell`` gets
    "kubelet started", "kubelet stopped" or "kubelet killed", each when it has happened.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        run_kubelet: Callable[[], VirtualProcess],
        check_bus: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._run_kubelet = run_kubelet
        self._check_bus = check_bus
        self._tell = tell
        self._process = VirtualProcess(f"{name}/systemd")
        self._kubelet: VirtualProcess | None = None
        self._state = "inactive"
        self._wanted = False
        self._timer: asyncio.Task[None] | None = None
        self._pause: asyncio.Task[None] | None = None

    @property
    def has_timer(self) -> bool:
        """Whether a timer will start the kubelet."""
        return self._timer is not None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Units]:
        """A connection."""
        await self._reach()
        yield self

    async def unit_states(self, *names: str) -> list[UnitState]:
        """Of the kubelet and of the timer."""
        await self._reach()
        sub = "stop-sigterm" if self._state == "deactivating" else ""
        kubelet = UnitState("loaded", self._state, sub)
        return [self._timer_state() if name == KUBELET_TIMER else kubelet for name in names]

    async def start_unit(self, name: str) -> None:
        """Of the kubelet."""
        await self._reach()
        self.request_start()

    async def stop_unit(self, name: str) -> None:
        """Of the kubelet or of the timer."""
        await self._reach()
        if name != KUBELET_TIMER:
            self.request_stop()
        elif self._timer:
            self._timer.cancel()
            self._timer = None

    async def start_timer(self, name: str, *, seconds: float, starts: str, description: str) -> None:
        """Starts the kubelet once."""
        await self._reach()
        if self._timer:
            raise Unavailable(f"Unit {name}.timer was already loaded or has a fragment file.")
        self._timer = self._process.start(self._elapse(seconds), name)

    async def run_command(self, name: str, command: Sequence[str], *, description: str) -> None:
        """Unavailable: no programs are run here, and nothing is mounted that one would unmount."""
        raise Unavailable(f"{name}.service cannot be started: a simulated machine runs no programs")

    # -- what people do, and what happens ------------------------------------------------------------------------------

    def request_start(self) -> None:
        """As ``systemctl start --no-block kubelet``; while it stops, it is started afterwards."""
        self._wanted = True
        if self._state in ("inactive", "activating"):
            self._begin()

    def request_stop(self) -> None:
        """As ``systemctl stop --no-block kubelet``."""
        self._wanted = False
        if self._state == "activating":
            self._state = "inactive"
        elif self._state == "active":
            self._state = "deactivating"
            self._process.start(self._stop_kubelet(), "stop of the kubelet")

    def kill_kubelet(self) -> None:
        """SIGKILL from outside: the unit restarts it."""
        if self._kubelet is None:
            return
        self._end_life("kubelet killed")
        if self._state == "deactivating":
            self._settle()
        else:
            self._state = "activating"
            self._pause = self._process.start(self._restart(), "restart of the kubelet")

    def end(self) -> None:
        """The machine is off, or hangs: nothing of it runs on, and nobody is told."""
        self._process.kill()
        if self._kubelet:
            self._kubelet.kill()
            self._kubelet = None

    # -- within --------------------------------------------------------------------------------------------------------

    async def _reach(self) -> None:
        self._check_bus()
        await self._clock.sleep(_CALL_SECONDS)
        self._check_bus()

    def _timer_state(self) -> UnitState:
        return UnitState("loaded", "active") if self._timer else UnitState("not-found", "inactive")

    def _begin(self) -> None:
        self._state = "active"
        if self._pause:
            self._pause.cancel()
        self._kubelet = self._process.call(self._run_kubelet)
        self._tell("kubelet started")

    def _end_life(self, what: str) -> None:
        assert self._kubelet
        self._kubelet.kill()
        self._kubelet = None
        self._tell(what)

    def _settle(self) -> None:
        self._state = "inactive"
        if self._wanted:
            self._begin()

    async def _stop_kubelet(self) -> None:
        await self._clock.sleep(STOP_SECONDS)
        if self._state == "deactivating" and self._kubelet:
            self._end_life("kubelet stopped")
            self._settle()

    async def _restart(self) -> None:
        await self._clock.sleep(RESTART_SECONDS)
        if self._state == "activating":
            self._pause = None
            self._begin()

    async def _elapse(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timer = None
        self.request_start()
