"""A machine's logind, which tells the truth about shutdowns, and whose clients can die: the kernel closes what they have open."""

from collections.abc import Callable

from lastcall_lab import virtual
from lastcall_lab.fakes.delay_limit_files import FakeLimitFiles
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.fakes.logind_session import FakeLogindSession


def limit_files(seconds: float) -> FakeLimitFiles:
    """The configuration files of a machine on which a later drop-in than lastcall's sets so much; 0: none does."""
    files = FakeLimitFiles()
    if seconds:
        files.put("zzz-site.conf", f"{seconds:g}s")
    return files


class SimulatedHostLogind(FakeLogind):
    """A lock's descriptor and a connection to the bus are closed when the process dies that has opened them.

    ``begun`` hears of each shutdown (what is granted, and whether there is a lock), ``forgotten`` that one is no more,
    ``goes_down`` that nothing holds it up any more.
    """

    begun: Callable[[float, bool], None] = staticmethod(lambda granted, locked: None)
    forgotten: Callable[[], None] = staticmethod(lambda: None)
    goes_down: Callable[[], None] = staticmethod(lambda: None)

    async def open(self) -> FakeLogindSession:
        """A session of the process that asks."""
        session = await super().open()
        if owner := virtual.current_process():
            owner.on_death(session.close)
        return session

    def inhibit(self, why: str) -> int:
        """A lock of the process that asks."""
        descriptor = super().inhibit(why)
        if owner := virtual.current_process():
            owner.on_death(lambda: self._close_for_the_dead(descriptor))
        return descriptor

    def _shut_down(self, kind: str) -> None:
        self.check()
        if not self.is_preparing:
            self.begun(self.limit, bool(self.descriptors))
        super()._shut_down(kind)

    def _start_unit(self) -> None:
        self.goes_down()
        super()._start_unit()

    def _forget_shutdown(self) -> None:
        if self.is_preparing and not self._job:
            self.forgotten()
        super()._forget_shutdown()

    def _close_for_the_dead(self, descriptor: int) -> None:
        if descriptor in self.descriptors:
            self.close(descriptor)
