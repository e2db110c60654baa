"""The demo's power button: an embedded logind that needs nothing, or the real one on a private bus."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from lastcall.adapters.lock_keeper import keeper
from lastcall.adapters.logind import SystemLogind
from lastcall.adapters.logind_conf import LogindConf
from lastcall.errors import LastcallError
from lastcall.lab.fake_keeper import FakeHolder, FakeKeeper
from lastcall.lab.fake_logind import FakeLogind
from lastcall.lab.private_logind import PrivateLogind
from lastcall.ports import Clock, DelayLimitFiles, LockKeeper, Logind


@dataclass(frozen=True, kw_only=True)
class Power:
    """A logind for the agent, its button, and ``off``, which returns when the machine would have gone down."""

    logind: Logind
    keeper: LockKeeper
    limit_files: DelayLimitFiles
    press: Callable[[], Awaitable[None]]
    off: Callable[[], Awaitable[None]]


@contextlib.asynccontextmanager
async def embedded(clock: Clock, state_dir: Path) -> AsyncIterator[Power]:
    """Logind in this process."""
    logind = FakeLogind(clock)

    async def off() -> None:
        await logind.wait_for_start(seconds=120)

    yield Power(
        logind=logind,
        keeper=FakeKeeper(FakeHolder(logind, clock)),
        limit_files=logind.files,
        press=logind.power_off,
        off=off,
    )


@contextlib.asynccontextmanager
async def private(clock: Clock, state_dir: Path) -> AsyncIterator[Power]:
    """systemd-logind itself on a bus of its own, where nothing can be powered off."""
    if reason := PrivateLogind.why_not():
        raise LastcallError(f"--logind private: {reason}")
    with PrivateLogind() as logind:

        async def off() -> None:
            await logind.wait_for_start(seconds=120)

        yield Power(
            logind=SystemLogind(logind.address),
            keeper=keeper(state_dir, clock),
            limit_files=LogindConf(logind.root),
            press=logind.power_off,
            off=off,
        )
