"""A fence in this process, for virtual time: it asks a machine's fake BMC, with all the faults that one can be given.

What a BMC may do wrong is said there (``bmc.Faults``): it lies, is late, answers nobody, does not switch, or stands for
another machine. Here it gets a name, a patience, and answers that are written down beforehand.
"""

from collections import deque
from collections.abc import Awaitable
from typing import TypeVar

from lastcall.aio import first
from lastcall.errors import LastcallError, TimedOut
from lastcall.lab.bmc import Bmc
from lastcall.model.power import Power
from lastcall.ports import Clock
from lastcall.ports_fences import FenceAnswer, FenceTarget

T = TypeVar("T")


class FakeFence:
    """``ports_fences.Fence``. ``patience``: seconds for a question that changes nothing.

    ``script``: what is answered to the next questions for the status, in order, in place of what the BMC would say; when
    it is used up, the BMC is asked. ``asked`` notes each verb with the time at which it began.
    """

    def __init__(self, name: str, bmc: Bmc, clock: Clock, *, patience: float = 10.0) -> None:
        self._name = name
        self._bmc = bmc
        self._clock = clock
        self._patience = patience
        self.script: deque[FenceAnswer | LastcallError] = deque()
        self.asked: list[tuple[str, float]] = []

    @property
    def name(self) -> str:
        """In the policy."""
        return self._name

    async def target(self) -> FenceTarget:
        """The machine that the BMC is wired to. TimedOut."""
        self._note("target")
        await self._limited(self._bmc.powered(), self._patience)
        return FenceTarget(system_uuid=self._bmc.uuid, name=self._name)

    async def status(self) -> FenceAnswer:
        """As it is written down, or as the BMC says; UNKNOWN if it does not answer."""
        self._note("status")
        try:
            if self.script:
                return _told(self.script.popleft())
            powered = await self._limited(self._bmc.powered(), self._patience)
        except LastcallError as error:
            return FenceAnswer(power=Power.UNKNOWN, why=str(error))
        return FenceAnswer(power=Power.ON if powered else Power.OFF)

    async def off(self, within: float) -> None:
        """Switches off. TimedOut."""
        self._note("off")
        await self._limited(self._bmc.power(on=False), within)

    async def on(self, within: float) -> None:
        """Switches on. TimedOut."""
        self._note("on")
        await self._limited(self._bmc.power(on=True), within)

    def _note(self, verb: str) -> None:
        self.asked.append((verb, self._clock.boottime()))

    async def _limited(self, work: Awaitable[T], seconds: float) -> T:
        answer: list[T] = []

        async def ask() -> None:
            answer.append(await work)

        if await first(ask(), self._clock.sleep(seconds)) == 1:
            raise TimedOut(f"{self._name} did not answer in {seconds:g} s")
        return answer[0]


def _told(one: FenceAnswer | LastcallError) -> FenceAnswer:
    if isinstance(one, LastcallError):
        raise one
    return one
