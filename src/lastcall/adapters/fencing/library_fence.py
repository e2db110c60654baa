"""A fence whose device is asked by errands: ``ports_fences.Fence`` by a library that blocks."""

from lastcall.adapters.fencing.errand import Action, Errand
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.power import Power
from lastcall.ports_fences import FenceAnswer, FenceTarget


class LibraryFence:
    """``patience``: seconds for a question that changes nothing."""

    def __init__(self, name: str, errand: Errand, *, patience: float) -> None:
        self._name = name
        self._errand = errand
        self._patience = patience

    @property
    def name(self) -> str:
        """In the policy."""
        return self._name

    async def target(self) -> FenceTarget:
        """What the device says of its machine. Unavailable, TimedOut."""
        reply = await self._errand.run(Action.TARGET, self._patience)
        if reply.target is None:
            raise Unavailable("it did not say which machine it is")
        return reply.target

    async def status(self) -> FenceAnswer:
        """Asks the device; every fault is UNKNOWN with a reason."""
        try:
            reply = await self._errand.run(Action.STATUS, self._patience)
        except LastcallError as error:
            return FenceAnswer(power=Power.UNKNOWN, why=str(error))
        return reply.answer or FenceAnswer(power=Power.UNKNOWN, why="it did not say whether it is on")

    async def off(self, within: float) -> None:
        """Returns when the device has accepted."""
        await self._errand.run(Action.OFF, within)

    async def on(self, within: float) -> None:
        """Returns when the device has accepted."""
        await self._errand.run(Action.ON, within)
