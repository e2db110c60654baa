"""What systemd is told about the kubelet, in which order, and what becomes of it when systemd does not do it."""

import asyncio
import re
import time
from functools import partial

import pytest
from click.testing import CliRunner
from support.host.logind import eventually, private_logind  # noqa: F401  (fixtures)

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.systemd import kubelet_service
from lastcall.adapters.systemd.kubelet_service import KubeletService
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.cli.agent import command
from lastcall_lab.private_logind import SystemdResponse

KUBELET = "kubelet.service"
TIMER = "lastcall-kubelet-start.timer"


@pytest.fixture
async def machine(private_logind):  # noqa: F811
    """A machine on which a kubelet runs."""
    await private_logind.run_unit(KUBELET)
    return private_logind


def agent(machine, unit=KUBELET):
    return KubeletService(unit, SystemClock(), partial(SystemdUnits.open, machine.address))


async def jobs(machine):
    """The jobs that systemd was given, in order."""
    members = ("StartTransientUnit", "StartUnit", "StopUnit")
    return [(call.member, call.arguments[0]) for call in await machine.calls() if call.member in members]


async def states(machine):
    async with SystemdUnits.open(machine.address) as systemd:
        return [state.active for state in await systemd.unit_states(KUBELET, TIMER)]


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


async def test_armed_before_it_is_stopped_and_started_before_it_is_disarmed(machine):
    down = [("StartTransientUnit", TIMER), ("StopUnit", KUBELET)]
    back = [("StartUnit", KUBELET), ("StopUnit", TIMER)]
    beside = agent(machine)
    await beside.begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME) + 5)
    assert await jobs(machine) == down
    await beside.mark_ready()
    assert await jobs(machine) == [*down, *back]


async def test_a_kubelet_that_an_earlier_run_has_stopped_is_started_when_nothing_is_shutting_down(machine):
    """Also without the journal of that run."""
    before = agent(machine)
    await before.begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME) + 60)
    await before.close()
    after = agent(machine)
    await after.clean_up(None)

    async def is_back():
        return await states(machine) == ["active", "inactive"]

    assert await eventually(is_back, True)
    await after.close()


async def test_a_kubelet_that_somebody_else_has_stopped_stays_so(machine):
    async with SystemdUnits.open(machine.address) as systemd:
        await systemd.stop_unit(KUBELET)
    beside = agent(machine)
    await beside.clean_up(None)
    await asyncio.sleep(0.3)
    assert ("StartUnit", KUBELET) not in await jobs(machine)
    await beside.close()


async def test_a_kubelet_that_somebody_starts_is_stopped_again_and_told(machine, monkeypatch):
    monkeypatch.setattr(kubelet_service, "LOOK_SECONDS", 0.05)
    beside = agent(machine)
    await beside.begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME) + 60)
    assert beside.take_notes() == ()
    stopped_again = asyncio.ensure_future(beside.wait_until_stopped_again())
    await machine.run_unit(KUBELET)

    async def is_stopped():
        return (await states(machine))[0] == "inactive"

    async def has_told():
        told.extend(beside.take_notes())
        return bool(told)

    told = []
    assert await eventually(has_told, True)
    assert await eventually(is_stopped, True)
    await asyncio.wait_for(stopped_again, 60)
    [note] = told
    assert note == "kubelet.service was started during the shutdown and is stopped again"
    await beside.mark_ready()
    assert await states(machine) == ["active", "inactive"]
    await asyncio.sleep(0.3)
    assert (await states(machine))[0] == "active"
    await beside.close()


async def test_the_kubelet_that_the_timer_starts_stays(machine, monkeypatch):
    monkeypatch.setattr(kubelet_service, "MARGIN", 0.5)
    monkeypatch.setattr(kubelet_service, "LOOK_SECONDS", 0.05)
    beside = agent(machine)
    await beside.begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME))
    await asyncio.sleep(0.6)
    await machine.run_unit(KUBELET)
    await asyncio.sleep(0.3)
    assert (await states(machine))[0] == "active"
    assert beside.take_notes() == ()
    await beside.close()


async def test_the_timer_word_for_word(machine):
    await agent(machine).begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME) + 5)
    [call] = await machine.calls("StartTransientUnit")
    name, mode, timer, service = call.arguments
    assert (name, mode) == (TIMER, "fail")
    assert 30_000_000 <= int(re.search(r"OnActiveSec', (\d+)", timer)[1]) <= 65_000_000
    assert re.search(r"'RemainAfterElapse', <[^<]* \('b', False\)>", timer)
    assert "'lastcall-kubelet-start.service'" in service
    assert re.search(r"'Wants', <[^<]* \('as', \['kubelet.service'\]\)>", service)


async def test_a_refusal_is_told_once_and_tried_again(machine, caplog, monkeypatch):
    monkeypatch.setattr(kubelet_service, "_RETRY", 0.05)
    await machine.set_mode(SystemdResponse.FAIL)
    down = asyncio.ensure_future(agent(machine).begin_shutdown(0.0))

    async def complained():
        return bool(told(caplog))

    assert await eventually(complained, True)
    await asyncio.sleep(0.5)
    assert not down.done()
    assert await states(machine) == ["active", "inactive"]
    assert ("StopUnit", KUBELET) not in await jobs(machine), "what cannot be armed is not stopped"
    [sentence] = told(caplog)
    assert sentence.startswith("kubelet.service is not stopped and will start again what is ended: ")
    assert "TransactionIsDestructive" in sentence
    await machine.set_mode(SystemdResponse.HANG)
    await asyncio.wait_for(down, 60)
    assert await states(machine) == ["inactive", "active"]
    assert len(told(caplog)) == 1


async def test_patience_ends(machine, caplog, monkeypatch):
    monkeypatch.setattr(kubelet_service, "_PATIENCE", 0.2)
    monkeypatch.setattr(kubelet_service, "_RETRY", 0.05)
    await machine.set_mode(SystemdResponse.FAIL)
    await asyncio.wait_for(agent(machine).begin_shutdown(0.0), 60)
    assert len(told(caplog)) == 1


async def test_nothing_is_stopped_any_more_when_the_shutdown_is_called_off(machine, monkeypatch):
    monkeypatch.setattr(kubelet_service, "_RETRY", 0.05)
    beside = agent(machine)
    await machine.set_mode(SystemdResponse.FAIL)
    down = asyncio.ensure_future(beside.begin_shutdown(0.0))
    await asyncio.sleep(0.2)
    await beside.mark_ready()
    await asyncio.wait_for(down, 60)
    await machine.set_mode(SystemdResponse.HANG)
    await asyncio.sleep(0.3)
    assert await states(machine) == ["active", "inactive"]


async def test_coming_back_is_tried_in_the_background(machine, caplog, monkeypatch):
    monkeypatch.setattr(kubelet_service, "_RETRY", 0.05)
    monkeypatch.setattr(kubelet_service, "BACK_SECONDS", 0.2)
    beside = agent(machine)
    await beside.begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME) + 5)
    await machine.set_mode(SystemdResponse.FAIL)
    await asyncio.wait_for(beside.mark_ready(), 60)
    assert await states(machine) == ["inactive", "active"]
    [sentence] = told(caplog)
    assert sentence.startswith(f"kubelet.service is not started yet; {TIMER} will do it at the latest: ")
    await machine.set_mode(SystemdResponse.HANG)
    assert await eventually(lambda: states(machine), ["active", "inactive"]) == ["active", "inactive"]


async def test_without_a_bus(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(kubelet_service, "_PATIENCE", 0.1)
    monkeypatch.setattr(kubelet_service, "_RETRY", 0.05)
    beside = KubeletService(KUBELET, SystemClock(), partial(SystemdUnits.open, f"unix:path={tmp_path}/none"))
    await asyncio.wait_for(beside.begin_shutdown(0.0), 60)
    await asyncio.wait_for(beside.mark_ready(), 60)
    assert [sentence.split(":")[0] for sentence in told(caplog)] == [
        "kubelet.service is not stopped and will start again what is ended",
        f"kubelet.service is not started yet; {TIMER} will do it at the latest",
    ]


async def test_a_stop_that_takes_too_long_is_told(machine, caplog, monkeypatch):
    monkeypatch.setattr(kubelet_service, "_STOP_SECONDS", 0.0)
    monkeypatch.setattr(kubelet_service, "_STOP_ATTEMPTS", 1)
    monkeypatch.setattr(kubelet_service, "_PATIENCE", 0.0)
    await asyncio.wait_for(agent(machine).begin_shutdown(time.clock_gettime(time.CLOCK_BOOTTIME) + 5), 60)
    [sentence] = told(caplog)
    assert sentence.endswith("kubelet.service is still deactivating after 0 s")


@pytest.mark.parametrize("name", ["kubelet", "kubelet.timer", ".service", "a b.service", "../k.service", "k.service\n"])
def test_a_name_that_is_no_services(name):
    result = CliRunner().invoke(command, ["--kubelet-unit", name])
    assert result.exit_code == 2
    assert f"{name!r} is not the name of a service, such as kubelet.service" in result.output
