"""The real logind waits for every copy of the lock, and goes on when the last one is closed."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from support.host.locks import CLOCK, a_keeper, killed_agent, patience  # noqa: F401  (fixtures)
from support.host.logind import patient_logind  # noqa: F401  (a fixture)

from lastcall.adapters.logind.session import SystemLogind
from lastcall.errors import ShutdownUnderWay


async def test_the_real_logind_waits_for_both_copies(keep, patient_logind):  # noqa: F811
    session = await SystemLogind(patient_logind.address).open()
    await keep.keep_lock(await session.take_lock("because"))
    await patient_logind.power_off()
    await asyncio.sleep(0.3)
    assert await patient_logind.starts() == []
    begin = CLOCK.boottime()
    await keep.release()
    assert begin <= (await patient_logind.wait_for_start()).at
    session.close()


async def test_a_killed_agent_does_not_let_the_real_logind_go_on(keep, patient_logind, tmp_path):  # noqa: F811
    await asyncio.to_thread(killed_agent, tmp_path, patient_logind.address)
    session = await SystemLogind(patient_logind.address).open()
    await patient_logind.power_off()
    await asyncio.sleep(0.3)
    assert await patient_logind.starts() == []
    with pytest.raises(ShutdownUnderWay):
        await session.take_lock("again")
    assert await keep.recover()
    os.kill((await asyncio.to_thread(holder_of, keep)), signal.SIGKILL)
    await asyncio.sleep(0.3)
    assert await patient_logind.starts() == [], "ours is left"
    begin = CLOCK.boottime()
    await keep.release()
    assert begin <= (await patient_logind.wait_for_start()).at
    session.close()


def holder_of(keep):
    info = Path(f"/proc/self/fdinfo/{keep._holder._pidfd}").read_text()
    return int(info.split("Pid:")[1].split()[0])


async def test_the_deadline_lets_the_real_logind_go_on(patient_logind, tmp_path):  # noqa: F811
    deadline = CLOCK.boottime() + 1.5
    await asyncio.to_thread(killed_agent, tmp_path, patient_logind.address, repr(deadline))
    await patient_logind.power_off()
    assert (await patient_logind.wait_for_start()).at >= deadline
