"""What a shutdown agent can rely on at logind: the real one and the fake one pass the same tests."""

import asyncio
import math

import pytest
from support.host.logind import PATIENT, PATIENT_FILE, eventually, machine  # noqa: F401  (a fixture)

from lastcall.errors import NotPermitted, ShutdownUnderWay, Unavailable
from lastcall.ports.node import LogindChange
from lastcall_lab.private_logind import SystemdResponse

NEVER = 0.3
"""Seconds in which what must not happen would have happened: the real one takes milliseconds."""


async def heard(session, wanted, seconds=60.0):
    """Waits for this change; whatever else was heard before it."""
    before = []
    async with asyncio.timeout(seconds):
        while not before or before[-1] is not wanted:
            before.append(await session.next_change())
    return before


async def heard_nothing(session, unwanted):
    with pytest.raises(TimeoutError):
        await heard(session, unwanted, NEVER)


@pytest.fixture
async def session(machine):  # noqa: F811
    session = await machine.logind.open()
    yield session
    session.close()


async def test_at_rest(session):
    assert await session.is_preparing() is False
    assert await session.max_delay() == float(PATIENT)
    assert await session.scheduled_shutdown() == ""
    assert list(await session.list_inhibitors()) == []


async def test_five_seconds_are_granted_where_no_file_says_otherwise(machine, session):  # noqa: F811
    await machine.forget_limit(PATIENT_FILE)
    await session.reload()
    assert await eventually(session.max_delay, 5.0) == 5.0


async def test_a_lock_is_listed_until_it_is_closed(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    [inhibitor] = await session.list_inhibitors()
    assert (inhibitor.what, inhibitor.who, inhibitor.why, inhibitor.mode) == (
        "shutdown",
        "lastcall",
        "because",
        "delay",
    )
    machine.close(lock)
    assert await eventually(session.list_inhibitors, []) == []


async def test_the_lock_is_the_descriptor_and_not_the_session(machine, session):  # noqa: F811
    other = await machine.logind.open()
    lock = await other.take_lock("because")
    other.close()
    other.close()
    await asyncio.sleep(NEVER)
    assert len(await session.list_inhibitors()) == 1
    machine.close(lock)
    assert await eventually(session.list_inhibitors, []) == []


@pytest.mark.parametrize(("verb", "target"), [("power_off", "poweroff.target"), ("reboot", "reboot.target")])
async def test_the_shutdown_is_told_and_waits_for_the_lock(machine, session, verb, target):  # noqa: F811
    lock = await session.take_lock("because")
    await getattr(machine, verb)()
    assert await heard(session, LogindChange.PREPARING) == [LogindChange.PREPARING]
    assert await session.is_preparing() is True
    assert await session.scheduled_shutdown() == verb.replace("_", "")
    await asyncio.sleep(NEVER)
    assert await machine.starts() == []
    released = machine.clock.boottime()
    machine.close(lock)
    start = await machine.wait_for_start()
    assert start.arguments == [target, "replace-irreversibly"]
    assert start.at >= released
    assert await session.is_preparing() is True


async def test_every_copy_of_the_lock_counts(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    copy = machine.duplicate(lock)
    await machine.power_off()
    machine.close(lock)
    await asyncio.sleep(NEVER)
    assert await machine.starts() == []
    machine.close(copy)
    await machine.wait_for_start()


async def test_two_locks_are_waited_for(machine, session):  # noqa: F811
    locks = [await session.take_lock("one"), await session.take_lock("two")]
    assert len(await session.list_inhibitors()) == 2
    await machine.power_off()
    machine.close(locks[0])
    await asyncio.sleep(NEVER)
    assert await machine.starts() == []
    machine.close(locks[1])
    await machine.wait_for_start()


async def test_without_a_lock_nothing_waits(machine, session):  # noqa: F811
    await machine.power_off()
    await machine.wait_for_start()
    assert await session.next_change() is LogindChange.PREPARING


async def test_no_lock_is_granted_while_a_shutdown_is_prepared(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.power_off()
    with pytest.raises(ShutdownUnderWay):
        await session.take_lock("late")
    with pytest.raises(ShutdownUnderWay):
        await machine.power_off()
    machine.close(lock)
    await machine.wait_for_start()
    with pytest.raises(ShutdownUnderWay):
        await session.take_lock("later")


async def test_the_limit_ends_the_delay_and_a_reload_takes_effect(machine, session):  # noqa: F811
    await machine.set_limit("50-test.conf", "1s 200ms")
    await asyncio.sleep(0.1)
    assert await session.max_delay() == float(PATIENT), "a file alone changes nothing"
    await session.reload()
    assert await eventually(session.max_delay, 1.2) == 1.2
    lock = await session.take_lock("because")
    begin = machine.clock.boottime()
    await machine.power_off()
    await machine.set_limit("50-test.conf", "10min")
    await session.reload()
    assert await eventually(session.max_delay, 600.0) == 600.0
    start = await machine.wait_for_start()
    assert start.at - begin >= 1.2, "the delay that has begun keeps its limit"
    machine.close(lock)


async def test_the_last_file_by_name_wins(machine, session):  # noqa: F811
    await machine.set_limit("99-kubelet.conf", "45")
    await machine.set_limit("unattended-upgrades-logind-maxdelay.conf", "30")
    await session.reload()
    assert await eventually(session.max_delay, 30.0) == 30.0
    await machine.set_limit("zz-lastcall.conf", "50")
    await session.reload()
    assert await eventually(session.max_delay, 50.0) == 50.0


async def test_a_limit_of_zero_waits_for_nobody(machine, session):  # noqa: F811
    await machine.set_limit("50-test.conf", "0")
    await session.reload()
    assert await eventually(session.max_delay, 0.0) == 0.0
    lock = await session.take_lock("because")
    await machine.power_off()
    await machine.wait_for_start()
    machine.close(lock)


async def test_no_limit(machine, session):  # noqa: F811
    await machine.set_limit("50-test.conf", "infinity")
    await session.reload()
    assert await eventually(session.max_delay, math.inf) == math.inf
    lock = await session.take_lock("because")
    if machine.version < 253:
        with pytest.raises(Unavailable, match="EOVERFLOW"):
            await machine.power_off()
        assert await session.next_change() is LogindChange.PREPARING, "which is not true, and never taken back"
        assert await session.is_preparing() is False
        machine.close(lock)
        await heard_nothing(session, LogindChange.CANCELLED)
    else:
        await machine.power_off()
        machine.close(lock)
        await machine.wait_for_start()


async def test_the_job_that_ends_cancels(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.power_off()
    machine.close(lock)
    await machine.wait_for_start()
    await machine.end_job()
    assert await heard(session, LogindChange.CANCELLED) == [LogindChange.PREPARING, LogindChange.CANCELLED]
    assert await session.is_preparing() is False
    machine.close(await session.take_lock("again"))


async def test_a_refused_job_cancels(machine, session):  # noqa: F811
    await machine.set_mode(SystemdResponse.FAIL)
    lock = await session.take_lock("because")
    await machine.power_off()
    machine.close(lock)
    assert await heard(session, LogindChange.CANCELLED) == [LogindChange.PREPARING, LogindChange.CANCELLED]
    assert await session.is_preparing() is False


async def test_a_refused_job_without_a_lock_fails_the_call_too(machine, session):  # noqa: F811
    await machine.set_mode(SystemdResponse.FAIL)
    with pytest.raises(Unavailable, match="refuses every job"):
        await machine.reboot()
    assert await heard(session, LogindChange.CANCELLED) == [LogindChange.PREPARING, LogindChange.CANCELLED]
    assert await session.is_preparing() is False


async def test_a_masked_target_is_refused_without_a_word(machine, session):  # noqa: F811
    await machine.set_mode(SystemdResponse.MASKED)
    with pytest.raises(NotPermitted):
        await machine.power_off()
    await heard_nothing(session, LogindChange.PREPARING)
    assert await session.is_preparing() is False


async def test_a_scheduled_shutdown_begins_when_its_time_has_come(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.schedule("reboot", 600)
    assert await session.scheduled_shutdown() == "reboot"
    assert await session.is_preparing() is False
    await machine.schedule("reboot", 0.3)
    await heard(session, LogindChange.PREPARING)
    machine.close(lock)
    assert (await machine.wait_for_start()).arguments[0] == "reboot.target"


async def test_a_schedule_that_is_cancelled_never_begins(machine, session):  # noqa: F811
    begin = machine.clock.boottime() + 10
    await machine.schedule("poweroff", begin - machine.clock.boottime())
    await machine.cancel_schedule()
    assert await session.scheduled_shutdown() == ""
    await asyncio.sleep(begin - machine.clock.boottime())
    await heard_nothing(session, LogindChange.PREPARING)
    assert await machine.starts() == []


async def test_a_schedule_is_told_since_257(machine, session):  # noqa: F811
    await machine.schedule("poweroff", 60)
    if machine.version >= 257:
        await heard(session, LogindChange.SCHEDULED)
    else:
        await heard_nothing(session, LogindChange.SCHEDULED)
    await machine.cancel_schedule()


async def test_cancelling_during_the_delay_works_since_257_and_without_a_signal(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.power_off()
    assert await session.next_change() is LogindChange.PREPARING
    await machine.cancel_schedule()
    cancelled = machine.version >= 257
    assert await eventually(session.is_preparing, not cancelled) is not cancelled
    machine.close(lock)
    if cancelled:
        await asyncio.sleep(NEVER)
        assert await machine.starts() == []
        machine.close(await session.take_lock("again"))
    else:
        await machine.wait_for_start()


async def test_locks_survive_a_restart_of_logind(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.fault("restart_logind")
    await heard(session, LogindChange.RESTARTED)
    assert [i.why for i in await session.list_inhibitors()] == ["because"]
    await machine.power_off()
    await heard(session, LogindChange.PREPARING)
    await asyncio.sleep(NEVER)
    assert await machine.starts() == []
    machine.close(lock)
    await machine.wait_for_start()


async def test_a_restart_of_logind_forgets_the_shutdown_without_a_signal(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.power_off()
    await heard(session, LogindChange.PREPARING)
    await machine.fault("restart_logind")
    assert await heard(session, LogindChange.RESTARTED) == [LogindChange.RESTARTED]
    assert await session.is_preparing() is False
    machine.close(lock)
    await heard_nothing(session, LogindChange.CANCELLED)
    assert await machine.starts() == []


async def test_logind_is_down_for_a_while(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    await machine.fault("stop_logind")
    with pytest.raises(Unavailable, match="is not on the bus"):
        await session.is_preparing()
    with pytest.raises(Unavailable, match="is not on the bus"):
        await machine.logind.open()
    machine.close(lock)
    await machine.fault("start_logind")
    await heard(session, LogindChange.RESTARTED)
    assert await eventually(session.list_inhibitors, []) == [], "closed meanwhile"


async def test_a_lost_bus_ends_the_session_but_not_the_lock(machine, session):  # noqa: F811
    lock = await session.take_lock("because")
    listening = asyncio.create_task(session.next_change())
    await machine.fault("stop_bus")
    with pytest.raises(Unavailable, match="is lost"):
        await listening
    for verb in (session.is_preparing, session.max_delay, session.list_inhibitors, session.reload, session.next_change):
        with pytest.raises(Unavailable, match="is lost"):
            await verb()
    with pytest.raises(Unavailable, match="no message bus"):
        await machine.logind.open()
    await machine.fault("start_bus")
    with pytest.raises(Unavailable, match="is not on the bus"):
        await machine.logind.open()
    await machine.fault("restart_logind")
    session = await machine.logind.open()
    assert [i.why for i in await session.list_inhibitors()] == ["because"]
    machine.close(lock)
    session.close()


async def test_nothing_is_lost_between_two_calls(machine, session):  # noqa: F811
    await machine.set_mode(SystemdResponse.FAIL)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await machine.power_off()
    await eventually(session.is_preparing, False)
    assert [await session.next_change() for _ in range(6)] == [LogindChange.PREPARING, LogindChange.CANCELLED] * 3


async def test_who_waits_for_other_answers_has_them(machine, session):  # noqa: F811
    """The real one may return at once."""
    lock = await session.take_lock("because")
    waiting = asyncio.create_task(session.wait_for_change())
    await asyncio.sleep(0)
    await machine.power_off()
    async with asyncio.timeout(60):
        await waiting
    assert await eventually(session.is_preparing, True)
    machine.close(lock)
