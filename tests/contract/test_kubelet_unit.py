"""The kubelet's stop and its armed restart: the recorder in systemd's place, and a real systemd."""

import asyncio
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest
from support.host import service_manager
from support.host.logind import eventually, private_logind  # noqa: F401  (fixtures)

from lastcall.adapters.doctor.bus_facts import HostBus
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.systemd.kubelet_service import MARGIN, KubeletService
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import Unavailable
from lastcall.names import KUBELET_START, KUBELET_TIMER

KUBELET = "kubelet.service"
UNITS = {
    **service_manager.BUS,
    KUBELET: "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sleep 1000\nRestart=always\n",
    "stubborn.service": "[Unit]\nRefuseManualStop=yes\n[Service]\nExecStart=/bin/sleep 1000\n",
    "slow.service": (
        "[Service]\nExecStart=/bin/sh -c 'trap \"sleep 1; exit\" TERM; while :; do sleep 0.05; done'\n"
        "ExecStop=/bin/sh -c 'sleep 0.3; touch /run/user/has-stopped'\n"
    ),
    "other.service": "[Service]\nExecStart=/bin/sleep 1000\n",
    "test.target": "[Unit]\nWants=dbus.service other.service\n",
}


class Systemd:
    """A systemd on which no kubelet runs yet."""

    def __init__(self, address):
        self.address = address
        self.clock = SystemClock()

    def agent(self, unit=KUBELET):
        """As of a new life of the program."""
        return KubeletService(unit, self.clock, partial(SystemdUnits.open, self.address))

    def deadline(self, seconds=5.0):
        return self.clock.boottime() + seconds

    async def states(self):
        """Of the kubelet and of the timer."""
        async with SystemdUnits.open(self.address) as systemd:
            return [state.active for state in await systemd.unit_states(KUBELET, KUBELET_TIMER)]

    async def start(self, unit=KUBELET):
        async with SystemdUnits.open(self.address) as systemd:
            await systemd.start_unit(unit)
        assert await eventually(self.states, ["active", "inactive"]) == ["active", "inactive"]

    async def until(self, *states):
        assert await eventually(self.states, list(states)) == list(states)


@pytest.fixture
def real_systemd():
    if reason := service_manager.why_not():
        pytest.skip(reason)
    state = Path(tempfile.mkdtemp(prefix="lastcall-", dir="/tmp"))  # short: a unix socket's path has 107 bytes
    try:
        with service_manager.service_manager(state, UNITS, start="test.target"):
            yield f"unix:path={state}/run/user/bus"
    finally:
        shutil.rmtree(state)


async def reached(address):
    """A systemd that has just been started comes to its bus a little later."""
    systemd = Systemd(address)
    for _ in range(3000):
        try:
            if await systemd.states():
                return systemd
        except Unavailable:
            await asyncio.sleep(0.02)
    raise AssertionError(f"no systemd at {address}")


@pytest.fixture(params=["recorder", "systemd"])
def address(request):
    if request.param == "systemd":
        return request.getfixturevalue("real_systemd")
    return request.getfixturevalue("private_logind").address


@pytest.fixture
async def systemd(address):
    return await reached(address)


async def test_stopped_and_armed_and_back(systemd):
    await systemd.start()
    agent = systemd.agent()
    await agent.begin_shutdown(systemd.deadline())
    assert await systemd.states() == ["inactive", "active"]
    await agent.mark_ready()
    await systemd.until("active", "inactive")


async def test_what_a_drill_asks_of_the_unit(real_systemd):
    systemd = await reached(real_systemd)
    await systemd.start()
    facts = [await HostBus(real_systemd).kubelet_unit(name) for name in (KUBELET, "stubborn.service", "none.service")]
    assert [(one.load, one.active, one.can_stop) for one in facts] == [
        ("loaded", "active", True),
        ("loaded", "inactive", False),
        ("not-found", "inactive", True),
    ]
    assert await systemd.states() == ["active", "inactive"], "it runs on"


async def test_a_kubelet_that_does_not_run_is_left_so(systemd, caplog):
    agent = systemd.agent()
    await agent.begin_shutdown(systemd.deadline())
    assert await systemd.states() == ["inactive", "inactive"]
    await agent.mark_ready()
    assert await systemd.states() == ["inactive", "inactive"]
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_a_unit_that_is_not_installed(systemd, caplog):
    agent = systemd.agent("lastcall-agent.service")
    await agent.begin_shutdown(systemd.deadline())
    await agent.mark_ready()
    assert await systemd.states() == ["inactive", "inactive"]
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_pods_may_end_when_it_has_its_signal_and_not_while_its_own_commands_run(real_systemd):
    systemd = await reached(real_systemd)
    async with SystemdUnits.open(systemd.address) as units:
        await units.start_unit("slow.service")
        agent = systemd.agent("slow.service")
        down = asyncio.ensure_future(agent.begin_shutdown(systemd.deadline()))
        await asyncio.wait_for(agent.wait_until_ending(), 60)
        assert (Path(systemd.address.removeprefix("unix:path=")).parent / "has-stopped").exists()
        [state] = await units.unit_states("slow.service")
        assert (state.active, state.sub) == ("deactivating", "stop-sigterm")
        assert not down.done()
        await down


async def test_pods_need_not_wait_for_one_that_does_not_run(systemd):
    agent = systemd.agent()
    await agent.begin_shutdown(systemd.deadline())
    await asyncio.wait_for(agent.wait_until_ending(), 60)


async def test_no_unit(systemd):
    await systemd.start()
    agent = systemd.agent("")
    await agent.begin_shutdown(systemd.deadline())
    await agent.mark_ready()
    assert await systemd.states() == ["active", "inactive"]


async def test_back_without_a_stop_starts_nothing(systemd):
    await systemd.agent().mark_ready()
    assert await systemd.states() == ["inactive", "inactive"]
    await systemd.start()
    await systemd.agent().mark_ready()
    assert await systemd.states() == ["active", "inactive"]


async def test_another_life_goes_on_and_another_comes_back(systemd):
    await systemd.start()
    deadline = systemd.deadline()
    await systemd.agent().begin_shutdown(deadline)
    await systemd.agent().begin_shutdown(deadline)
    assert await systemd.states() == ["inactive", "active"]
    await systemd.agent().mark_ready()
    await systemd.until("active", "inactive")


async def test_a_kubelet_that_somebody_starts_meanwhile_is_stopped_again(systemd):
    await systemd.start()
    await systemd.agent().begin_shutdown(systemd.deadline())
    async with SystemdUnits.open(systemd.address) as units:
        await units.start_unit(KUBELET)
    await systemd.until("active", "active")
    await systemd.agent().begin_shutdown(systemd.deadline())
    assert await systemd.states() == ["inactive", "active"]


async def test_a_shutdown_soon_after_a_cancelled_one(systemd):
    await systemd.start()
    agent = systemd.agent()
    for _ in range(3):
        await agent.begin_shutdown(systemd.deadline())
        assert await systemd.states() == ["inactive", "active"]
        await agent.mark_ready()
        await systemd.until("active", "inactive")


async def test_called_off_while_it_is_being_stopped(systemd):
    await systemd.start()
    agent = systemd.agent()
    for delay in (0.0, 0.002, 0.004, 0.008, 0.016, 0.032):
        down = asyncio.ensure_future(agent.begin_shutdown(systemd.deadline()))
        await asyncio.sleep(delay)
        await agent.mark_ready()
        await asyncio.wait_for(down, 60)
        await systemd.until("active", "inactive")


async def test_a_shutdown_that_is_cancelled_while_the_kubelet_stops_does_not_stop_it_later(systemd):
    await systemd.start()
    agent = systemd.agent()
    shutdown = asyncio.create_task(agent.begin_shutdown(systemd.deadline()))
    await asyncio.sleep(0.01)
    await agent.mark_ready()
    await shutdown
    assert "kubelet stays stopped" not in {task.get_name() for task in asyncio.all_tasks()}
    await systemd.until("active", "inactive")


async def test_the_newest_intention_counts(systemd):
    await systemd.start()
    agent = systemd.agent()
    for _ in range(5):
        deadline = systemd.deadline()
        await asyncio.wait_for(
            asyncio.gather(agent.begin_shutdown(deadline), agent.mark_ready(), agent.begin_shutdown(deadline)),
            timeout=20,
        )
        assert await systemd.states() == ["inactive", "active"]
        await asyncio.wait_for(
            asyncio.gather(agent.mark_ready(), agent.begin_shutdown(deadline), agent.mark_ready()), timeout=60
        )
        await systemd.until("active", "inactive")


async def test_there_is_one_timer_of_a_name(systemd):
    async with SystemdUnits.open(systemd.address) as units:
        timer = {"seconds": 60.0, "starts": KUBELET, "description": "A test's"}
        await units.start_timer(KUBELET_START, **timer)
        with pytest.raises(Unavailable, match="UnitExists"):
            await units.start_timer(KUBELET_START, **timer)


async def next_elapse(address):
    """When the timer is due, CLOCK_MONOTONIC."""
    async with SystemdUnits.open(address) as units:
        path = "/org/freedesktop/systemd1/unit/lastcall_2dkubelet_2dstart_2etimer"
        arguments = ("ss", "org.freedesktop.systemd1.Timer", "NextElapseUSecMonotonic")
        service, interface = "org.freedesktop.systemd1", "org.freedesktop.DBus.Properties"
        reply = await units._bus.call(service, path, interface, "Get", *arguments)
        return reply.body[0].value / 1e6


async def test_nobody_comes_back_and_the_timer_starts_it(real_systemd):
    systemd = await reached(real_systemd)
    await systemd.start()
    begin = time.monotonic()
    await systemd.agent().begin_shutdown(systemd.deadline(8.0 - MARGIN))
    due = await next_elapse(systemd.address)
    assert begin + 7.9 <= due <= time.monotonic() + 8.1
    assert await eventually(systemd.states, ["active", "inactive"], seconds=60) == ["active", "inactive"]
    assert time.monotonic() >= due - 0.1
    await systemd.agent().mark_ready()
    assert await systemd.states() == ["active", "inactive"]
    await systemd.agent().begin_shutdown(systemd.deadline())
    assert await systemd.states() == ["inactive", "active"], "armed anew after it has elapsed"


async def test_the_timer_is_due_a_minute_after_the_deadline(real_systemd):
    systemd = await reached(real_systemd)
    await systemd.start()
    begin = time.monotonic()
    await systemd.agent().begin_shutdown(systemd.deadline(100.0))
    due = await next_elapse(systemd.address)
    assert begin + 100.0 + MARGIN - 0.1 <= due <= time.monotonic() + 100.0 + MARGIN + 0.1
