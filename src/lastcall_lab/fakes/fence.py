"""A fence within this process, for virtual time: it uses a machine's fake BMC with its injected faults.

``machines.bmc.BmcFaults`` lists the faults: the BMC lies, is late, does not answer, does not switch, or controls
another machine. This class adds a name, a timeout and scripted answers.
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
    """``ports.fences.Fence``. ``patience``: seconds for a request that changes nothing.

    ``script``: the answers to the next status requests, in order, in place of the BMC's; when it is used up, the BMC
    answers. ``asked`` records each request with its start time.
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
        """The fencer's name in the policy."""
        return self._name

    async def read_target(self) -> FenceTarget:
        """The machine that the BMC is wired to. Raises TimedOut."""
        self._log_call("target")
        await self._within_patience(self._bmc.is_powered(), self._patience)
        return FenceTarget(system_uuid=self._bmc.uuid, name=self._name)

    async def read_power(self) -> FenceAnswer:
        """The scripted answer, or the BMC's; UNKNOWN if it does not answer."""
        self._log_call("status")
        try:
            if self.script:
                return _answer_or_raise(self.script.popleft())
            powered = await self._within_patience(self._bmc.is_powered(), self._patience)
        except LastcallError as error:
            return FenceAnswer(power=PowerState.UNKNOWN, why=str(error))
        return FenceAnswer(power=PowerState.ON if powered else PowerState.OFF)

    async def switch_off(self, within: float) -> None:
        """Switches off. Raises TimedOut."""
        self._log_call("off")
        await self._within_patience(self._bmc.power(on=False), within)

    async def switch_on(self, within: float) -> None:
        """Switches on. Raises TimedOut."""
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
