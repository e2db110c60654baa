"""What of the lock outlives the agent's container, with the real logind and a real systemd on one bus."""

import asyncio
import os
import signal

import pytest
from support.host import service_manager
from support.host.logind import eventually
from support.host.real_host import real_host

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.supervisor import PIPE_VARIABLE
from lastcall.adapters.logind.host_lock import HostLockKeeper, container_pipe
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper
from lastcall.adapters.logind.session import SystemLogind
from lastcall.errors import Unavailable
from lastcall.names import HOST_LOCK, HOST_RESUME

KUBELET = "kubelet.service"
NEVER = 0.3
"""Seconds in which what must not happen would have happened."""


class Container:
    """One container of the agent: its end closes all that its processes have."""

    def __init__(self, host, directory, *, kubelet=KUBELET):
        self.reading, self.writing = os.pipe()
        self.inside = HolderProcessKeeper(directory, SystemClock())
        self.keeper = HostLockKeeper(
            self.inside, SystemClock(), host.open_units, kubelet_unit=kubelet, pipe=container_pipe(self.environment())
        )

    def environment(self):
        return {PIPE_VARIABLE: str(self.reading)}

    async def end(self):
        """SIGKILL of process 1."""
        if self.keeper._work:
            await self.keeper._work
        own, holder = self.inside._own, self.inside._holder
        self.inside._own = None
        if holder:
            holder.set_end_callback(lambda: None)
            signal.pidfd_send_signal(holder._pidfd, signal.SIGKILL)
            await holder.wait()
        for descriptor in (own, self.reading, self.writing):
            if descriptor is not None:
                os.close(descriptor)


@pytest.fixture
def host():
    if reason := service_manager.why_not():
        pytest.skip(reason)
    with real_host({KUBELET: "[Service]\nExecStart=/bin/sleep 100000\n"}) as found:
        yield found


@pytest.fixture
async def session(host):
    await host.until_answers()
    session = await SystemLogind(host.logind.address).open()
    yield session
    session.close()


@pytest.fixture
def container(host, tmp_path):
    return lambda **choices: Container(host, tmp_path, **choices)


async def locks(session):
    return [one.who for one in await session.list_inhibitors()]


async def armed(container, session):
    assert not await container.keeper.recover()
    await container.keeper.keep_lock(await session.take_lock("because"))
    return container.keeper


def deadline(seconds):
    return SystemClock().boottime() + seconds


async def both_run(host):
    return await eventually(lambda: host.running(HOST_LOCK, HOST_RESUME), [HOST_LOCK, HOST_RESUME])


async def test_at_rest_the_host_has_nothing(host, session, container):
    keeper = await armed(container(), session)
    assert await host.running(HOST_LOCK, HOST_RESUME) == []
    await keeper.release()
    assert await eventually(lambda: locks(session), []) == []


async def test_the_end_of_the_container_leaves_the_lock_and_starts_the_kubelet(host, session, container):
    first = container()
    keeper = await armed(first, session)
    await host.logind.power_off()
    await keeper.set_deadline(deadline(100))
    assert await both_run(host) == [HOST_LOCK, HOST_RESUME]
    await asyncio.sleep(NEVER)
    assert await host.running(KUBELET) == [], "the container lives"
    await first.end()
    assert await eventually(lambda: host.running(KUBELET), [KUBELET]) == [KUBELET]
    await asyncio.sleep(NEVER)
    assert not await host.went_down()
    second = container().keeper
    assert await second.recover()
    assert second.is_held
    await second.release()
    assert await eventually(host.went_down, True)
    assert await host.running(HOST_LOCK, HOST_RESUME) == []


async def test_the_second_container_is_watched_too(host, session, container):
    first = container()
    keeper = await armed(first, session)
    await host.logind.power_off()
    await keeper.set_deadline(deadline(100))
    assert await both_run(host)
    await first.end()
    assert await eventually(lambda: host.running(HOST_LOCK, HOST_RESUME), [HOST_LOCK]) == [HOST_LOCK]
    async with host.open_units() as systemd:
        await systemd.stop_unit(KUBELET)
    second = container()
    await second.keeper.recover()
    await second.keeper.set_deadline(deadline(100))
    assert await both_run(host) == [HOST_LOCK, HOST_RESUME]
    await second.end()
    assert await eventually(lambda: host.running(KUBELET), [KUBELET]) == [KUBELET]
    third = container().keeper
    assert await third.recover()
    await third.release()
    assert await eventually(host.went_down, True)


async def test_the_hosts_copy_is_closed_at_the_deadline(host, session, container):
    first = container()
    keeper = await armed(first, session)
    await host.logind.power_off()
    await keeper.set_deadline(deadline(3))
    assert await both_run(host)
    await first.end()
    assert not await host.went_down()
    assert await eventually(host.went_down, True)


async def test_an_earlier_deadline_counts_for_the_hosts_copy_too(host, session, container):
    first = container()
    keeper = await armed(first, session)
    await host.logind.power_off()
    await keeper.set_deadline(deadline(1000))
    assert await both_run(host)
    await keeper.set_deadline(deadline(5))
    await first.end()
    assert not await host.went_down()
    assert await eventually(host.went_down, True)


async def test_released_means_that_the_host_has_no_copy(host, session, container):
    keeper = await armed(container(), session)
    await keeper.set_deadline(deadline(100))
    assert await both_run(host)
    await keeper.release()
    assert await eventually(lambda: locks(session), []) == []
    assert await host.running(HOST_LOCK, HOST_RESUME, KUBELET) == []
    assert not keeper.is_held


async def test_released_while_the_services_are_being_started(host, session, container):
    for delay in (0.0, 0.001, 0.004, 0.016, 0.064):
        keeper = await armed(container(), session)
        await keeper.set_deadline(deadline(100))
        await asyncio.sleep(delay)
        await keeper.release()
        assert await eventually(lambda: locks(session), []) == []
        assert await host.running(HOST_LOCK, HOST_RESUME, KUBELET) == []


async def test_a_new_lock_after_a_cancel_ends_the_services(host, session, container):
    keeper = await armed(container(), session)
    await keeper.set_deadline(deadline(100))
    assert await both_run(host)
    await keeper.keep_lock(await session.take_lock("again"))
    assert await host.running(HOST_LOCK, HOST_RESUME, KUBELET) == []
    assert await eventually(lambda: locks(session), ["lastcall"]) == ["lastcall"]
    await keeper.release()


async def test_without_a_kubelet_to_stop_there_is_the_lock_alone(host, session, container):
    keeper = await armed(container(kubelet=""), session)
    await keeper.set_deadline(deadline(100))
    assert await eventually(lambda: host.running(HOST_LOCK, HOST_RESUME), [HOST_LOCK]) == [HOST_LOCK]
    await keeper.release()


async def test_a_bus_that_is_away_means_that_the_lock_counts_as_held(host, session, container, caplog):
    first = container()
    keeper = await armed(first, session)
    await asyncio.to_thread(host.logind.stop_bus)
    await keeper.set_deadline(deadline(100))
    assert await eventually(lambda: said(caplog, "would not survive the container"), True)
    with pytest.raises(Unavailable, match=HOST_LOCK):
        await keeper.release()
    assert keeper.is_held
    await first.end()


async def said(caplog, words):
    return words in caplog.text
