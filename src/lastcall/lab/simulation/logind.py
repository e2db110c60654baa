"""A machine's logind, whose clients can die: the kernel closes what they have open."""

from lastcall.lab import virtual
from lastcall.lab.fake_logind import FakeLogind, FakeSession


class HostLogind(FakeLogind):
    """A lock's descriptor and a connection to the bus are closed when the process dies that has opened them."""

    async def open(self) -> FakeSession:
        """A session of the process that asks."""
        session = await super().open()
        if owner := virtual.current():
            owner.at_death(session.close)
        return session

    def inhibit(self, why: str) -> int:
        """A lock of the process that asks."""
        descriptor = super().inhibit(why)
        if owner := virtual.current():
            owner.at_death(lambda: self._close_for_the_dead(descriptor))
        return descriptor

    def _close_for_the_dead(self, descriptor: int) -> None:
        if descriptor in self.descriptors:
            self.close(descriptor)
