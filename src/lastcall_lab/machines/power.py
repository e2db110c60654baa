"""Power and cables of the lab's machines, with faults to rehearse."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from lastcall.adapters.kube.transport import ApiResponse, Chunks, Transport
from lastcall.aio import cancel_and_wait, wait_first
from lastcall.errors import InvalidInput, LastcallError, Unavailable

log = logging.getLogger(__name__)


class PowerSwitch(Enum):
    """The position of a machine's switch: its power or the injected fault."""

    ON = "on"
    OFF = "off"
    """The plug is pulled: everything on it ends at once, without a notification."""
    BUTTON = "button"
    """Its power button has been pressed: it shuts down in order, then is off."""
    HUNG = "hang"
    """Its kubelet has stopped and does not answer; its pods run on, and write."""
    PARTITIONED = "partition"
    """Cut off from the control plane; everything on it runs on."""
    NO_STORAGE = "storage"
    """Cut off from its storage: every write to a volume fails."""


class MachineHost(Protocol):
    """The software of a machine."""

    async def boot(self) -> None:
        """Starts everything, as after power on."""
        ...

    async def die(self) -> None:
        """Power loss: everything ends at once, without a notification."""
        ...

    async def press(self) -> bool:
        """Presses the power button. True when the system would power off, False if the shutdown was cancelled.

        Raises LastcallError if no program handles the button.
        """
        ...

    async def call_off_shutdown(self) -> bool:
        """Cancels a shutdown; False if it is too late for that."""
        ...

    async def cut_storage(self, *, cut: bool) -> None:
        """Cuts the cable to the storage, or mends it: every write to a volume fails while it is cut."""
        ...

    async def stop_kubelet(self) -> None:
        """Stops only the kubelet, in the middle of its work; pods run on."""
        ...

    async def start_kubelet(self) -> None:
        """Starts the kubelet again."""
        ...


class NetworkCable:
    """A ``transport.Transport`` that can be cut: requests then fail, and streams end.

    A cable with a ``trunk`` is cut with it: the trunk carries several programs of one machine, each with its own
    identity.
    """

    def __init__(self, transport: Transport, *, trunk: "NetworkCable | None" = None) -> None:
        self._transport = transport
        self._trunk = trunk
        self.cut = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """Sends a request; Unavailable while it is cut. A request from before the cut may have taken effect."""
        self.check()
        answer = await self._transport.request(method, target, headers, body, stream=stream)
        self.check()
        if not isinstance(answer.body, bytes):
            return ApiResponse(answer.status, answer.headers, _CuttableBody(answer.body, self))
        return answer

    def close(self) -> None:
        """Closes all connections."""
        self._transport.close()

    def check(self) -> None:
        """Raises Unavailable while it is cut."""
        if self.cut or (self._trunk and self._trunk.cut):
            raise Unavailable("the machine is cut off from the control plane")


class _CuttableBody:
    """A body that ends when the cable is cut, without later data."""

    def __init__(self, chunks: Chunks, cable: NetworkCable) -> None:
        self._chunks = chunks
        self._cable = cable

    def __aiter__(self) -> "_CuttableBody":
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        self._cable.check()
        return chunk

    async def aclose(self) -> None:
        """Discards the unread rest."""
        await self._chunks.aclose()


class LabMachine:
    """One machine: its host, its cable, its switch."""

    def __init__(self, name: str, host: MachineHost, cable: NetworkCable) -> None:
        self.name = name
        self.host = host
        self.cable = cable
        self.switch = PowerSwitch.OFF
        self._fault = PowerSwitch.ON
        self._going_down: asyncio.Event | None = None
        """Set when the shutdown has ended for any reason."""
        self._dying: asyncio.Event | None = None
        """Set when its power is off, and nothing on it runs any more."""
        self.on_fault: Callable[[PowerSwitch], None] = lambda _: None
        """Called with each fault, and with ``ON`` when one is undone; not called at the end of a shutdown."""

    @property
    def is_powered(self) -> bool:
        """Whether software may run on it, as a truthful BMC reports it."""
        return self.switch is not PowerSwitch.OFF or self._dying is not None

    @property
    def hung(self) -> bool:
        """Whether its kubelet does not answer, also during a shutdown."""
        return self._fault is PowerSwitch.HUNG

    async def turn(self, to: PowerSwitch) -> None:
        """Moves the switch; for ``button`` it returns when the machine is off, or its shutdown cancelled.

        The button undoes no fault, and no fault keeps a machine that shuts down from going off; ``on`` ends both. A
        loss of power completes before anything else is done to the machine.
        """
        await self.wait_for_power_loss()
        if to is self.switch:
            return
        log.info("%s: %s", self.name, to.value)
        if to is PowerSwitch.OFF:
            await self._cut_power()
            return
        if self.switch is PowerSwitch.OFF:
            if to is not PowerSwitch.ON:
                raise InvalidInput("power", [f"{self.name} is off: {to.value} makes no sense"])
            self.cable.cut = False
            self.switch = PowerSwitch.ON
            await self.host.boot()
            return
        if to is PowerSwitch.BUTTON:
            self.switch = to
            await self._go_down()
            return
        if to is PowerSwitch.ON:
            await self.call_off_shutdown()
        await self._undo_fault()
        self.switch = to
        await self._apply_fault(to)

    async def wait_for_power_loss(self) -> None:
        """Returns when no loss of power is under way: what ran on a machine that is off has ended."""
        if self._dying:
            await self._dying.wait()

    async def reset(self) -> None:
        """Ends everything at once and boots: a hang ends with that, but cut cables stay cut.

        No effect if it is off.
        """
        fault = PowerSwitch.ON if self._fault is PowerSwitch.HUNG else self._fault
        if self.switch is PowerSwitch.OFF:
            return
        await self.turn(PowerSwitch.OFF)
        await self.turn(PowerSwitch.ON)
        if fault is not PowerSwitch.ON:
            await self.turn(fault)

    async def call_off_shutdown(self) -> None:
        """Cancels the shutdown, if there is one; a fault stays. InvalidInput if it is too late for that."""
        if self._going_down:
            if not await self.host.call_off_shutdown():
                raise InvalidInput("power", [f"{self.name} is as good as off: it is too late to call that off"])
            self._end_shutdown()
            self.switch = self._fault

    async def mend(self, fault: PowerSwitch) -> None:
        """Undoes this fault, if it is present; a shutdown or power off continues all the same."""
        if self._fault is fault and self.switch is not PowerSwitch.OFF:
            await self._undo_fault()
            self.on_fault(PowerSwitch.ON)
            if self.switch is fault:
                self.switch = PowerSwitch.BUTTON if self._going_down else PowerSwitch.ON

    async def _go_down(self) -> None:
        if self._going_down:
            await self._going_down.wait()
            return
        over = self._going_down = asyncio.Event()
        pressing = asyncio.ensure_future(self.host.press())
        try:
            await wait_first(asyncio.shield(pressing), over.wait())
        except LastcallError:  # no program handles the button
            self._end_shutdown()
            self.switch = self._fault
            raise
        finally:
            await cancel_and_wait(pressing)
        if self._going_down is not over:
            return
        if pressing.result():
            await self._cut_power()
        else:
            self._end_shutdown()
            self.switch = self._fault

    def _end_shutdown(self) -> None:
        if self._going_down:
            self._going_down.set()
            self._going_down = None

    async def _cut_power(self) -> None:
        self.switch, self.cable.cut = PowerSwitch.OFF, True
        self._end_shutdown()
        dying = self._dying = asyncio.Event()
        try:
            await self.host.die()
        finally:
            self._dying = None
            dying.set()
        fault, self._fault = self._fault, PowerSwitch.ON
        if fault is PowerSwitch.NO_STORAGE:
            await self.host.cut_storage(cut=False)

    async def _undo_fault(self) -> None:
        """Undoes the current fault."""
        fault, self._fault = self._fault, PowerSwitch.ON
        self.cable.cut = False
        if fault is PowerSwitch.NO_STORAGE:
            await self.host.cut_storage(cut=False)
        elif fault is PowerSwitch.HUNG:
            await self.host.start_kubelet()

    async def _apply_fault(self, to: PowerSwitch) -> None:
        self._fault = to
        self.on_fault(to)
        if to is PowerSwitch.PARTITIONED:
            self.cable.cut = True
        elif to is PowerSwitch.NO_STORAGE:
            await self.host.cut_storage(cut=True)
        elif to is PowerSwitch.HUNG:
            await self.host.stop_kubelet()
