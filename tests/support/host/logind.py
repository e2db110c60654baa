"""systemd-logind for tests: the real one, private, and the fake one, behind one face."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.systemd import bus
from lastcall_lab.fakes.delay_limit_files import FakeLimitFiles
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.private_logind import PrivateLogind, SystemdCall, SystemdResponse

PATIENT_FILE = "10-patient.conf"
PATIENT = "120"
"""A limit within which a shutdown waits for a lock however busy the machine is."""


@contextlib.contextmanager
def a_private_logind(limit=None):
    """A fresh real logind on a private bus; ``limit`` is its InhibitDelayMaxSec, None for its own of 5 s.

    Who does not answer over the bus hangs: it has a minute, as long as the test says nothing else.
    """
    if reason := PrivateLogind.why_not():
        pytest.skip(reason)
    private = PrivateLogind()
    if limit is not None:
        private.write_drop_in(PATIENT_FILE, f"[Login]\nInhibitDelayMaxSec={limit}\n")
    with pytest.MonkeyPatch.context() as patched, private:
        patched.setattr(bus, "ANSWER_SECONDS", 60.0)
        yield private


@pytest.fixture
def private_logind():
    """One with its own limit."""
    with a_private_logind() as private:
        yield private


@pytest.fixture
def patient_logind():
    """One that waits for a lock however busy the machine is."""
    with a_private_logind(PATIENT) as private:
        yield private


async def eventually(read: Callable[[], Awaitable[Any]], wanted: Any, *, seconds: float = 60.0) -> Any:
    """What ``read`` gives when it gives ``wanted`` at last, or after so many seconds."""
    for _ in range(int(seconds / 0.02)):
        if await read() == wanted:
            break
        await asyncio.sleep(0.02)
    return await read()


class Machine:
    """A logind and the machine around it, real or fake; faults happen as coroutines, since real ones take a while."""

    def __init__(self, machine: PrivateLogind | FakeLogind) -> None:
        self.machine: Any = machine
        self.real = isinstance(machine, PrivateLogind)
        self.logind: Any = SystemLogind(machine.address) if isinstance(machine, PrivateLogind) else machine
        self.version: int = machine.version
        self.clock = SystemClock()

    async def power_off(self) -> None:
        await self.machine.power_off()

    async def reboot(self) -> None:
        await self.machine.reboot()

    async def schedule(self, kind: str, seconds: float) -> None:
        await self.machine.schedule(kind, seconds)

    async def cancel_schedule(self) -> None:
        await self.machine.cancel_schedule()

    async def starts(self) -> list[str]:
        return [str(call.arguments[0]) for call in await self.machine.starts()]

    async def wait_for_start(self, number: int = 1) -> SystemdCall:
        call: SystemdCall = await self.machine.wait_for_start(number)
        return call

    async def set_mode(self, mode: SystemdResponse) -> None:
        await self.machine.set_mode(mode)

    async def end_job(self, number: int = 1) -> None:
        await self.machine.end_job(number)

    async def fault(self, name: str) -> None:
        """stop_logind, start_logind, restart_logind, stop_bus or start_bus."""
        if self.real:
            await asyncio.to_thread(getattr(self.machine, name))
        else:
            getattr(self.machine, name)()

    def close(self, descriptor: int) -> None:
        if self.real:
            os.close(descriptor)
        else:
            self.machine.close(descriptor)

    def duplicate(self, descriptor: int) -> int:
        return os.dup(descriptor) if self.real else self.machine.duplicate(descriptor)

    async def set_limit(self, name: str, value: str) -> None:
        """Writes a drop-in."""
        if self.real:
            await asyncio.to_thread(self.machine.write_drop_in, name, f"[Login]\nInhibitDelayMaxSec={value}\n")
        else:
            self.machine.files.put(name, value)

    async def forget_limit(self, name: str) -> None:
        """Takes a drop-in away."""
        if self.real:
            await asyncio.to_thread((self.machine.drop_ins / name).unlink)
        else:
            del self.machine.files._files[name]


@contextlib.contextmanager
def a_machine(kind):
    """``real`` is the real logind; ``fake-VERSION`` the fake one. Both wait for a lock however busy the machine is."""
    if kind == "real":
        with a_private_logind(PATIENT) as private:
            yield Machine(private)
    else:
        files = FakeLimitFiles()
        files.put(PATIENT_FILE, PATIENT)
        yield Machine(FakeLogind(SystemClock(), version=int(kind[5:]), files=files))


@pytest.fixture(params=["fake-252", "fake-257", "real"])
def machine(request):
    """Each test runs with the fakes and with the real logind."""
    with a_machine(request.param) as found:
        yield found
