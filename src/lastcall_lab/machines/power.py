"""Power and cables of the lab's machines: faults to rehearse with."""

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
    """What has been done to a machine."""

    ON = "on"
    OFF = "off"
    """The plug is pulled: nothing on it runs, nothing of it is told."""
    BUTTON = "button"
    """Its power button has been pressed: it goes down in order, and is off then."""
    HUNG = "hang"
    """Its kubelet has stopped and answers nobody; its pods run on, and write."""
    PARTITIONED = "partition"
    """Cut off from the control plane; everything on it runs on."""
    NO_STORAGE = "storage"
    """Cut off from its storage: every write to a volume fails."""


class MachineHost(Protocol):
    """What runs on a machine."""

    async def boot(self) -> None:
        """Starts everything, as after power on."""
        ...

    async def die(self) -> None:
        """The power is gone: all that runs ends at once, without a word to anybody."""
        ...

    async def press(self) -> bool:
        """The power button. True when the operating system would cut the power, False if the shutdown is called off.

        LastcallError if nobody hears it.
        """
        ...

    async def call_off_shutdown(self) -> bool:
        """Calls off a shutdown; False if it is too late for that."""
        ...

    async def cut_storage(self, *, cut: bool) -> None:
        """The cable to the storage: every write to a volume fails while it is cut."""
        ...

    async def stop_kubelet(self) -> None:
        """The kubelet alone ends, in the middle of whatever it does; pods run on."""
        ...

    async def start_kubelet(self) -> None:
        """And begins anew."""
        ...


class NetworkCable:
    """``transport.Transport`` that can be cut: then nothing answers, and what streams ends.

    What hangs on a ``trunk`` is cut with it: several programs of one machine, each with an identity of its own.
    """

    def __init__(self, transport: Transport, *, trunk: "NetworkCable | None" = None) -> None:
        self._transport = transport
        self._trunk = trunk
        self.cut = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """One answer; Unavailable while it is cut. What was asked before the cut may have been done."""
        self.check()
        answer = await self._transport.request(method, target, headers, body, stream=stream)
        self.check()
        if not isinstance(answer.body, bytes):
            return ApiResponse(answer.status, answer.headers, _CuttableBody(answer.body, self))
        return answer

    def close(self) -> None:
        """Gives up all connections."""
        self._transport.close()

    def check(self) -> None:
        """Unavailable while it is cut."""
        if self.cut or (self._trunk and self._trunk.cut):
            raise Unavailable("the machine is cut off from the control plane")


class _CuttableBody:
    """A body that stops when the cable is cut: what comes after that is never seen."""

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
        """Gives up what has not been read."""
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
        """Set when it does so no more, for whatever reason."""
        self._dying: asyncio.Event | None = None
        """Set when its power is gone, and nothing on it runs any more."""
        self.on_fault: Callable[[PowerSwitch], None] = lambda _: None
        """Hears of each fault, and ``ON`` when one is taken back; not of its end by power off."""

    @property
    def is_powered(self) -> bool:
        """Whether something may run on it, as a BMC that tells the truth sees it."""
        return self.switch is not PowerSwitch.OFF or self._dying is not None

    @property
    def hung(self) -> bool:
        """Whether its kubelet answers nobody, also while it goes down."""
        return self._fault is PowerSwitch.HUNG

    async def turn(self, to: PowerSwitch) -> None:
        """From any position to any other; to ``button`` it returns when the machine is off, or its shutdown called off.

        The button takes no fault back, and no fault keeps a machine that goes down from going off; ``on`` ends both. A
        machine that is losing its power has lost it before anything else is done to it.
        """
        if self._dying:
            await self._dying.wait()
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

    async def reset(self) -> None:
        """All that runs ends at once, and it boots: who hung does so no more, and cables that are cut stay so.

        Nothing if it is off.
        """
        fault = PowerSwitch.ON if self._fault is PowerSwitch.HUNG else self._fault
        if self.switch is PowerSwitch.OFF:
            return
        await self.turn(PowerSwitch.OFF)
        await self.turn(PowerSwitch.ON)
        if fault is not PowerSwitch.ON:
            await self.turn(fault)

    async def call_off_shutdown(self) -> None:
        """The shutdown, if there is one; a fault stays. InvalidInput if it is too late for that."""
        if self._going_down:
            if not await self.host.call_off_shutdown():
                raise InvalidInput("power", [f"{self.name} is as good as off: it is too late to call that off"])
            self._end_shutdown()
            self.switch = self._fault

    async def mend(self, fault: PowerSwitch) -> None:
        """Takes this fault back, if it is there; a machine that goes down, or has gone off, does so all the same."""
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
        except LastcallError:  # nobody hears the button
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
        """Takes back what was done to it."""
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
