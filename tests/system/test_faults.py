"""What can go wrong around the agent, and with it, in the middle of a shutdown and at rest. All parts are real."""

import asyncio
import os
import signal

import pytest
from support.agents.system_node import LONG, PATIENT, Node
from support.host.logind import private_logind  # noqa: F401  (fixtures)

from lastcall.adapters.logind.holder_process import HolderProcess
from lastcall.model.shutdown import PhaseEnd, ShutdownOutcome
from lastcall.report.text_report import render_text
from lastcall.report.timeline import build_timeline

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def node(private_logind, tmp_path):  # noqa: F811
    node = Node(tmp_path, private_logind, config=PATIENT)
    yield node
    await node.clean_up()


def three(node, takes=2, **slower):
    node.add("web", takes=slower.get("web", takes))
    node.add("db", priority=1000, takes=slower.get("db", takes))
    node.add("dns", priority=2_000_000_000, takes=slower.get("dns", takes))


async def gone_in_order(node, *, kind="poweroff.target"):
    start = await node.logind.wait_for_start()
    assert start.arguments[0] == kind
    times = [node.when(pod, what) for pod in ("web", "db", "dns") for what in ("TERM", "exit")]
    assert times == sorted(times), "each phase after the one before, SIGTERM once each"
    assert start.at >= times[-1] - 0.02, "not before the last pod"
    return start


@pytest.mark.parametrize("pod", ["web", "db", "dns"])
async def test_killed_in_each_phase_and_started_again(node, pod):
    three(node, **{pod: 8})  # it is not over when the agent is killed
    await node.start()
    await node.logind.power_off()
    await node.until_saw(pod, "TERM")
    await node.kill()
    await asyncio.sleep(0.5)
    assert await node.logind.starts() == [], "the lock outlives the agent"
    assert "lastcall" in await node.lock_holders()
    await node.start(wait=False)
    await gone_in_order(node)
    record = await node.over()
    assert [phase.end for phase in record.phases] == [PhaseEnd.DONE] * 3
    for name in ("web", "db", "dns"):
        assert node.status(name)["reason"] == "Terminated"


async def test_a_pod_that_ended_while_no_agent_was_there(node):
    three(node, takes=1)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("db", "TERM")
    await node.kill()
    await node.until_saw("db", "exit")
    await asyncio.sleep(0.3)
    await node.start(wait=False)
    await gone_in_order(node)
    assert node.status("db")["reason"] == "Terminated"
    assert "db is refused" not in node.log.read_text()
    told = render_text(build_timeline(node.records()[0]))
    assert "! ended while no agent ran" in told[told.index("/db ") :].split("/", 2)[1]


async def test_killed_again_and_again(node):
    three(node, takes=4)  # not over when it is killed for the last time
    await node.start()
    await node.logind.power_off()
    for _ in range(4):
        await asyncio.sleep(0.9)
        await node.kill()
        assert await node.logind.starts() == []
        await node.start(wait=False)
    await gone_in_order(node)
    assert len(node.records()) == 1


async def test_the_time_that_is_left_goes_on_while_the_agent_is_dead(node):
    node.config.write_text(LONG)
    node.add("stubborn", grace=60, ignores_term=True)
    node.add("dns", priority=2_000_000_000)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("stubborn", "TERM")
    await node.kill()
    await asyncio.sleep(12)
    await node.start(wait=False)
    start = await node.logind.wait_for_start()
    record = await node.over()
    [again] = [note.at for note in record.notes if "a restarted agent went on" in note.text]
    [kill] = [one.kill for pod in record.pods for one in pod.containers if pod.name == "stubborn"]
    assert 19 <= kill < again + 19, "not twenty seconds more: eight of the twenty were left at most"
    assert node.when("dns", "TERM") >= record.boottime + kill - 0.02
    assert node.when("dns", "exit") <= start.at + 0.02
    assert node.count("stubborn", "TERM") == 1


async def test_nobody_comes_back_and_the_lock_is_closed_at_the_deadline(node):
    """And not at logind's limit, which is far away."""
    node.config.write_text(LONG)
    node.logind.write_drop_in("zzz.conf", "[Login]\nInhibitDelayMaxSec=300\n")
    node.add("stubborn", grace=60, ignores_term=True)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("stubborn", "TERM")
    began = node.records()[0].boottime
    await node.kill()
    start = await node.logind.wait_for_start(seconds=120)
    assert start.at - began > 40.5


async def test_the_keeper_of_the_lock_is_killed_and_replaced(node):
    node.add("web", takes=1)
    await node.start()
    holder = HolderProcess.find(node.state)
    await holder.kill()

    async def replaced():
        return HolderProcess.find(node.state) is not None

    await node.until(replaced, "another keeper")
    await node.kill()
    await asyncio.sleep(0.3)
    assert await node.lock_holders() == ["lastcall"], "the other keeper has it"
    await node.start()


async def test_logind_restarted_at_rest(node):
    three(node, takes=1)
    await node.start()
    for number in (signal.SIGTERM, signal.SIGKILL):
        await asyncio.to_thread(node.logind.restart_logind, number)
        await asyncio.sleep(0.5)
        await node.until(node.armed, "the lock")
    await node.logind.power_off()
    await gone_in_order(node)


async def test_the_bus_restarted_at_rest(node):
    three(node, takes=1)
    await node.start()
    await asyncio.to_thread(node.logind.stop_bus)
    await asyncio.sleep(1.2)
    await asyncio.to_thread(node.logind.start_bus)
    await asyncio.to_thread(node.logind.restart_logind)  # it does not come back to the bus by itself
    await asyncio.sleep(0.5)
    await node.until(node.armed, "the lock")

    async def back():
        return node.log.read_text().rstrip().splitlines()[-1].endswith(" for the pods when the machine shuts down")

    await node.until(back, "the agent to be back on the bus")
    await node.logind.power_off()
    await gone_in_order(node)


async def test_the_bus_lost_in_the_middle_stops_nothing(node):
    three(node, takes=1)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("web", "TERM")
    await asyncio.to_thread(node.logind.stop_bus)
    await node.until_saw("dns", "exit")

    async def over():
        return [r.outcome for r in node.records()] == [ShutdownOutcome.COMPLETED]

    await node.until(over, "the shutdown to be over without a bus")


async def test_logind_comes_late(node):
    node.add("web", takes=1)
    await asyncio.to_thread(node.logind.stop_logind)
    await node.start(wait=False)
    await node.until(node.running, "the pods")
    assert "INFO    armed" not in node.log.read_text()
    await asyncio.to_thread(node.logind.start_logind)
    await node.until(node.armed, "the lock")


async def test_no_bus_at_all(node, tmp_path):
    """A host without systemd: said in one sentence, no crash, and the pods run."""
    await asyncio.to_thread(node.logind.stop_bus)
    node.add("web")
    await node.start(wait=False)
    await node.until(node.running, "the pods")

    async def told():
        return "not armed" in node.log.read_text()

    await node.until(told, "the agent to say so")
    assert "Traceback" not in node.log.read_text()
    assert node.process.returncode is None


async def test_started_late_when_the_machine_is_going_down_already(node):
    """Somebody else's lock holds the machine: the pods are ended in what time there is, without a lock of ours."""
    from lastcall.adapters.logind.session import SystemLogind

    session = await SystemLogind(node.logind.address).open()
    other = await session.take_lock("somebody else's")
    three(node, takes=0)
    await node.start()
    assert await node.stop(signal.SIGTERM) == 0
    await node.logind.power_off()
    await node.start(wait=False)
    for pod in ("web", "db", "dns"):
        await node.until_saw(pod, "exit")
    assert node.count("web", "start") == 1, "nothing is started again"
    os.close(other)
    session.close()
    await gone_in_order(node)
