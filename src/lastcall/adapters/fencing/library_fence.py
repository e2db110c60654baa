"""A ``ports.fences.Fence`` by a blocking library, whose requests run in worker processes."""

from lastcall.adapters.fencing.fence_worker import FenceAction, FenceWorker
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget


class LibraryFence:
    """A fence by a library. ``patience``: seconds for a request that changes nothing."""

    def __init__(self, name: str, errand: FenceWorker, *, patience: float) -> None:
        self._name = name
        self._errand = errand
        self._patience = patience

    @property
    def name(self) -> str:
        """The fencer's name in the policy."""
        return self._name

    async def read_target(self) -> FenceTarget:
        """The machine that the device reports to control. Raises Unavailable, TimedOut."""
        reply = await self._errand.ask(FenceAction.TARGET, self._patience)
        if reply.target is None:
            raise Unavailable("it did not say which machine it is")
        return reply.target

    async def read_power(self) -> FenceAnswer:
        """Reads the power from the device; every fault is UNKNOWN with a reason."""
        try:
            reply = await self._errand.ask(FenceAction.STATUS, self._patience)
        except LastcallError as error:
            return FenceAnswer(power=PowerState.UNKNOWN, why=str(error))
        return reply.answer or FenceAnswer(power=PowerState.UNKNOWN, why="it did not say whether it is on")

    async def switch_off(self, within: float) -> None:
        """Returns when the device has accepted the order."""
        await self._errand.ask(FenceAction.OFF, within)

    async def switch_on(self, within: float) -> None:
        """Returns when the device has accepted the order."""
        await self._errand.ask(FenceAction.ON, within)
