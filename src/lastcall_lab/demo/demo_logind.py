"""The demo's power button: an embedded logind without requirements, or the real one on a private bus."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.adapters.logind.lock_keeper import choose_lock_keeper
from lastcall.adapters.logind.session import SystemLogind
from lastcall.errors import LastcallError
from lastcall.ports.node import Clock, DelayLimitFiles, LockKeeper, Logind
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.private_logind import PrivateLogind


@dataclass(frozen=True, kw_only=True)
class DemoLogind:
    """A logind for the agent, its button, and ``off``, which returns when the machine would power off."""

    logind: Logind
    keeper: LockKeeper
    limit_files: DelayLimitFiles
    press: Callable[[], Awaitable[None]]
    off: Callable[[], Awaitable[None]]


@contextlib.asynccontextmanager
async def open_embedded_logind(clock: Clock, state_dir: Path) -> AsyncIterator[DemoLogind]:
    """A logind within this process."""
    logind = FakeLogind(clock)

    async def off() -> None:
        await logind.wait_for_start(seconds=120)

    yield DemoLogind(
        logind=logind,
        keeper=FakeLockKeeper(FakeLockHolder(logind, clock)),
        limit_files=logind.files,
        press=logind.power_off,
        off=off,
    )


@contextlib.asynccontextmanager
async def open_private_logind(clock: Clock, state_dir: Path) -> AsyncIterator[DemoLogind]:
    """A real systemd-logind on a private bus, where nothing can be powered off."""
    if reason := PrivateLogind.why_not():
        raise LastcallError(f"--logind private: {reason}")
    with PrivateLogind() as logind:

        async def off() -> None:
            await logind.wait_for_start(seconds=120)

        yield DemoLogind(
            logind=SystemLogind(logind.address),
            keeper=choose_lock_keeper(state_dir, clock),
            limit_files=LogindConf(logind.root),
            press=logind.power_off,
            off=off,
        )
