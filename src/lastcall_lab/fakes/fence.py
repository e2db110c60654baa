"""A fence in this process, for virtual time: it asks a machine's fake BMC, with all the faults that one can be given.

What a BMC may do wrong is said there (``bmc.Faults``): it lies, is late, answers nobody, does not switch, or stands for
another machine. Here it gets a name, a patience, and answers that are written down beforehand.
"""

from collections import deque
from collections.abc import Awaitable
from typing import TypeVar

from lastcall.aio import wait_first
from lastcall.errors import LastcallError, TimedOut
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget
from lastcall.ports.node import Clock
from lastcall_lab.machines.bmc import Bmc

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

    async def read_target(self) -> FenceTarget:
        """The machine that the BMC is wired to. TimedOut."""
        self._log_call("target")
        await self._within_patience(self._bmc.is_powered(), self._patience)
        return FenceTarget(system_uuid=self._bmc.uuid, name=self._name)

    async def read_power(self) -> FenceAnswer:
        """As it is written down, or as the BMC says; UNKNOWN if it does not answer."""
        self._log_call("status")
        try:
            if self.script:
                return _answer_or_raise(self.script.popleft())
            powered = await self._within_patience(self._bmc.is_powered(), self._patience)
        except LastcallError as error:
            return FenceAnswer(power=PowerState.UNKNOWN, why=str(error))
        return FenceAnswer(power=PowerState.ON if powered else PowerState.OFF)

    async def switch_off(self, within: float) -> None:
        """Switches off. TimedOut."""
        self._log_call("off")
        await self._within_patience(self._bmc.power(on=False), within)

    async def switch_on(self, within: float) -> None:
        """Switches on. TimedOut."""
        self._log_call("on")
        await self._within_patience(self._bmc.power(on=True), within)

    def _log_call(self, verb: str) -> None:
        self.asked.append((verb, self._clock.boottime()))

    async def _within_patience(self, work: Awaitable[T], seconds: float) -> T:
        answer: list[T] = []

        async def ask() -> None:
            answer.append(await work)

        if await wait_first(ask(), self._clock.sleep(seconds)) == 1:
            raise TimedOut(f"{self._name} did not answer in {seconds:g} s")
        return answer[0]


def _answer_or_raise(one: FenceAnswer | LastcallError) -> FenceAnswer:
    if isinstance(one, LastcallError):
        raise one
    return one
