"""The fake logind and its keeper in virtual time: hours pass at once, on the second."""

import asyncio

import pytest

from lastcall.ports.node import LogindChange
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.virtual import VirtualClock, run


def test_the_limit_is_kept_to_the_second():
    async def main():
        clock = VirtualClock()
        logind = FakeLogind(clock)
        logind.files.put("50-test.conf", "1h 2min")
        session = await logind.open()
        await session.reload()
        await session.take_lock("because")
        await clock.sleep(7)
        await logind.power_off()
        assert await session.next_change() is LogindChange.PREPARING
        return (await logind.wait_for_start(seconds=10_000)).at

    assert 7 + 3720 <= run(main()) < 7 + 3720.1


def test_a_dead_agents_lock_is_closed_at_its_deadline():
    async def main():
        clock = VirtualClock()
        logind = FakeLogind(clock)
        logind.files.put("50-test.conf", "1h")
        session = await logind.open()
        await session.reload()
        holder = FakeLockHolder(logind, clock)
        keeper = FakeLockKeeper(holder)
        await keeper.keep_lock(await session.take_lock("because"))
        await logind.schedule("reboot", 86_400)
        assert await session.next_change() is LogindChange.SCHEDULED
        assert await session.next_change() is LogindChange.PREPARING
        await keeper.set_deadline(clock.boottime() + 600)
        keeper.die()
        start = await logind.wait_for_start(seconds=10_000)
        assert not logind.descriptors
        return start

    start = run(main())
    assert start.at == 86_400 + 600
    assert start.arguments[0] == "reboot.target"


def test_it_is_the_same_every_time():
    async def main():
        clock = VirtualClock()
        logind = FakeLogind(clock)
        session = await logind.open()
        heard = []
        for seconds in (1, 2, 3):
            lock = await session.take_lock("because")
            await logind.schedule("poweroff", seconds)
            while not heard or heard[-1][1] is not LogindChange.PREPARING:
                heard.append((clock.boottime(), await session.next_change()))
            heard.append((clock.boottime(), None))
            logind.close(lock)
            await logind.end_job(seconds)
            heard.append((clock.boottime(), await session.next_change()))
        return heard, [call.at for call in await logind.starts()]

    assert run(main()) == run(main())


def verbs():
    """What makes answers other than they were, told by a signal or not."""
    return {
        "power off": lambda logind: logind.power_off(),
        "schedule": lambda logind: logind.schedule("reboot", 100),
        "cancel": lambda logind: logind.cancel_schedule(),
        "restart": lambda logind: logind.restart_logind(),
        "stop": lambda logind: logind.stop_logind(),
        "no bus": lambda logind: logind.stop_bus(),
        "reload": lambda logind: logind.reload(),
    }


@pytest.mark.parametrize("verb", verbs())
@pytest.mark.parametrize("version", [252, 257])
def test_answers_are_unsettled_by_what_changes_them_and_by_nothing_else(verb, version):
    async def main():
        clock = VirtualClock()
        logind = FakeLogind(clock, version=version)
        session = await logind.open()
        await session.take_lock("because")
        waiting = asyncio.create_task(session.wait_for_change(), name="waits")
        await clock.sleep(1000)
        before = waiting.done()
        done = verbs()[verb](logind)
        if done is not None:
            await done
        await clock.sleep(0)
        return before, waiting.done()

    assert run(main()) == (False, True)
