"""Power and cables of the lab's machines: faults to rehearse with."""

import logging
from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from lastcall.adapters.kube.transport import Answer, Chunks, Transport
from lastcall.errors import InvalidInput, Unavailable

log = logging.getLogger(__name__)


class Switch(Enum):
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


class Host(Protocol):
    """What runs on a machine."""

    async def boot(self) -> None:
        """Starts everything, as after power on."""
        ...

    async def die(self) -> None:
        """The power is gone: all that runs ends at once, without a word to anybody."""
        ...

    async def press(self) -> None:
        """The power button; returns when the operating system would cut the power."""
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


class Cable:
    """``transport.Transport`` that can be cut: then nothing answers, and what streams ends.

    What hangs on a ``trunk`` is cut with it: several programs of one machine, each with an identity of its own.
    """

    def __init__(self, transport: Transport, *, trunk: "Cable | None" = None) -> None:
        self._transport = transport
        self._trunk = trunk
        self.cut = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> Answer:
        """One answer; Unavailable while it is cut. What was asked before the cut may have been done."""
        self.check()
        answer = await self._transport.request(method, target, headers, body, stream=stream)
        self.check()
        if not isinstance(answer.body, bytes):
            return Answer(answer.status, answer.headers, _Stream(answer.body, self))
        return answer

    def close(self) -> None:
        """Gives up all connections."""
        self._transport.close()

    def check(self) -> None:
        """Unavailable while it is cut."""
        if self.cut or (self._trunk and self._trunk.cut):
            raise Unavailable("the machine is cut off from the control plane")


class _Stream:
    """A body that stops when the cable is cut: what comes after that is never seen."""

    def __init__(self, chunks: Chunks, cable: Cable) -> None:
        self._chunks = chunks
        self._cable = cable

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        self._cable.check()
        return chunk

    async def aclose(self) -> None:
        """Gives up what has not been read."""
        await self._chunks.aclose()


class Machine:
    """One machine: its host, its cable, its switch."""

    def __init__(self, name: str, host: Host, cable: Cable) -> None:
        self.name = name
        self.host = host
        self.cable = cable
        self.switch = Switch.OFF

    @property
    def powered(self) -> bool:
        """Whether something may run on it, as a BMC that tells the truth sees it."""
        return self.switch is not Switch.OFF

    async def turn(self, to: Switch) -> None:
        """From any position to any other; to ``button`` it returns when the machine is off."""
        if to is self.switch:
            return
        log.info("%s: %s", self.name, to.value)
        if to is Switch.OFF:
            await self._go_off()
            return
        if self.switch is Switch.OFF:
            if to is not Switch.ON:
                raise InvalidInput("power", [f"{self.name} is off: {to.value} makes no sense"])
            self.cable.cut = False
            self.switch = Switch.ON
            await self.host.boot()
            return
        await self._mend()
        self.switch = to
        await self._harm(to)

    async def _go_off(self) -> None:
        before, self.switch, self.cable.cut = self.switch, Switch.OFF, True
        await self.host.die()
        if before is Switch.NO_STORAGE:
            await self.host.cut_storage(cut=False)

    async def _mend(self) -> None:
        """Takes back what the present position does."""
        self.cable.cut = False
        if self.switch is Switch.NO_STORAGE:
            await self.host.cut_storage(cut=False)
        elif self.switch is Switch.HUNG:
            await self.host.start_kubelet()

    async def _harm(self, to: Switch) -> None:
        if to is Switch.PARTITIONED:
            self.cable.cut = True
        elif to is Switch.NO_STORAGE:
            await self.host.cut_storage(cut=True)
        elif to is Switch.HUNG:
            await self.host.stop_kubelet()
        elif to is Switch.BUTTON:
            await self.host.press()
            if self.switch is Switch.BUTTON:
                await self._go_off()
