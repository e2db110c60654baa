"""The agent when its disk takes nothing: the shutdown goes on."""

import pytest
from support.agents.virtual_machine import on_machine
from support.agents.virtual_parts import pod

from lastcall_lab.fakes.actor_runtime import ContainerScript


@on_machine()
async def test_a_full_disk_stops_nothing(machine):
    machine.disk.full = True
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    pressed = await machine.going_down()
    assert await machine.off() == pytest.approx(pressed + 3)
    assert len(machine.terms("web")) == 1


@on_machine()
async def test_a_full_disk_is_told(machine, caplog):
    machine.runtime.add(pod("web"), {"main": ContainerScript(after_term=3)})
    await machine.start_agent()
    machine.disk.full = True
    await machine.logind.power_off()
    await machine.off()
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "No space left on device" in told[0]
    assert any("start and end" in text for text in told)


@on_machine()
async def test_a_journal_that_cannot_be_opened_again_stops_nothing(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=5)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000))
    pressed = await machine.going_down(1)
    await machine.kill_agent()

    def reopen(_):
        raise OSError(30, "Read-only file system")

    machine.disk.reopen = reopen
    await machine.start_agent()
    assert await machine.off() == pytest.approx(pressed + 5)
    assert len(machine.terms("dns")) == 1


@on_machine()
async def test_a_status_that_cannot_be_written_stops_nothing(machine):
    """Of a pod that has ended while no agent was there to see it."""
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=2)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=1)})
    await machine.going_down(1)
    await machine.kill_agent()
    await machine.clock.sleep(3)

    async def pod_ended(live, codes):
        raise OSError(28, "No space left on device")

    machine.node.report_pod_ended = pod_ended
    await machine.start_agent()
    await machine.off()
    assert len(machine.terms("dns")) == 1
    assert not machine.runtime.running()
