"""A node goes down: the real logind, the program as a process, pods as processes; judged by the pods and systemd."""

import asyncio
import errno
import json
import os
import platform
import sys
import time

import pytest
from support.agents.system_node import PATIENT, Node
from support.host.logind import private_logind  # noqa: F401  (fixtures)

from lastcall.model.shutdown import PhaseEnd, PodOutcome, ShutdownOutcome
from lastcall_lab.private_logind import SystemdResponse

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def node(private_logind, tmp_path):  # noqa: F811
    node = Node(tmp_path, private_logind)
    yield node
    await node.clean_up()


def three(node):
    """A pod in each of the three phases."""
    node.add("web", takes=1)
    node.add("db", priority=1000, takes=1)
    node.add("dns", priority=2_000_000_000, takes=1)


def in_order(node):
    """Every phase begins when the one before it is over, and the machine goes down after the last."""
    times = [node.when("web", "TERM"), node.when("web", "exit"), node.when("db", "TERM"), node.when("db", "exit")]
    times += [node.when("dns", "TERM"), node.when("dns", "exit")]
    return times == sorted(times)


async def test_holds_the_machine_until_the_last_pod_is_done(node):
    three(node)
    await node.start()
    assert await node.property("max_delay") == 16, "raised by a drop-in"
    assert (node.logind.drop_ins / "zz-lastcall.conf").read_text().count("InhibitDelayMaxSec=16") == 1
    assert node.ready()["status"] == "True"
    await node.logind.power_off()
    start = await node.logind.wait_for_start()
    assert start.arguments[0] == "poweroff.target"
    assert in_order(node)
    assert start.at >= node.when("dns", "exit") - 0.02  # the pods' clock ticks in hundredths
    record = await node.over()
    assert record.notes[-1].text == "the lock was released: all phases are over", "not at the deadline"

    ready = node.ready()
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "KubeletNotReady", "node is shutting down")
    for name in ("web", "db", "dns"):
        status = node.status(name)
        assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
        assert status["message"] == "Pod was terminated in response to imminent node shutdown."
        [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert [phase.end for phase in record.phases] == [PhaseEnd.DONE] * 3

    async def both():
        state = json.loads((node.state / "graceful_node_shutdown_state").read_text())
        return state["startTime"] < state["endTime"]

    await node.until(both, "the kubelet's state file to have both times")


async def test_hooks_come_first_and_stragglers_are_killed_in_their_phase(node):
    node.add("hooked", hook=2, takes=0)
    node.add("stubborn", grace=3, ignores_term=True)
    node.add("overlong", grace=60, ignores_term=True)
    node.add("dns", priority=2_000_000_000)
    await node.start()
    await node.logind.power_off()
    start = await node.logind.wait_for_start()
    assert node.when("hooked", "hook") < node.when("hooked", "hook-over") <= node.when("hooked", "TERM")
    [record] = node.records()
    began = record.boottime
    pods = {pod.name: pod for pod in record.pods}
    assert [pods[n].outcome for n in ("hooked", "stubborn", "overlong")] == [
        PodOutcome.GRACEFUL,
        PodOutcome.KILLED,
        PodOutcome.KILLED,
    ]
    assert (pods["stubborn"].grace, pods["overlong"].grace) == (3, 6), "no more than the phase has"
    stubborn, overlong = (pods[name].containers[0] for name in ("stubborn", "overlong"))
    assert 2.9 <= stubborn.kill <= overlong.kill <= record.phases[0].ended <= record.phases[2].started
    assert overlong.kill >= 5, "not before its time"
    assert node.when("dns", "TERM") >= began + overlong.kill - 0.02
    assert pods["overlong"].was_cut_short
    assert not pods["stubborn"].was_cut_short
    assert start.at >= began + record.pods[-1].ended


async def test_the_node_is_not_ready_before_the_first_signal(node):
    node.add("web", takes=1)
    await node.start()
    await node.logind.power_off()
    await node.logind.wait_for_start()
    written = (node.state / "status/node.json").stat().st_mtime
    written += time.clock_gettime(time.CLOCK_BOOTTIME) - time.time()
    assert written <= node.when("web", "TERM") + 0.02


async def test_a_sidecar_ends_after_the_main_container(node):
    node.config.write_text(PATIENT)
    node.add("mesh", takes=1, sidecar=1)
    await node.start()
    await node.logind.power_off()
    start = await node.logind.wait_for_start()
    times = [node.when("mesh", "TERM"), node.when("mesh", "exit"), node.when("mesh-sidecar", "TERM")]
    times += [node.when("mesh-sidecar", "exit"), start.at + 0.02]
    assert times == sorted(times)


async def test_new_pods_are_refused_from_the_first_moment(node):
    node.config.write_text(PATIENT)
    node.add("web", takes=8)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("web", "TERM")
    node.add("newcomer", priority=2_000_000_000)

    async def refused():
        return (node.state / "status/pods/default_newcomer.json").exists()

    await node.until(refused, "the newcomer's status")
    status = node.status("newcomer")
    assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")
    assert status["message"] == "Pod was rejected as the node is shutting down."
    await node.logind.wait_for_start()
    assert node.count("newcomer", "start") == 0


async def test_a_rival_drop_in_that_wins_is_named_and_the_node_armed_all_the_same(node):
    node.logind.write_drop_in("zzz-corporate.conf", "[Login]\nInhibitDelayMaxSec=8\n")
    node.add("stubborn", grace=60, ignores_term=True)
    node.add("dns", priority=2_000_000_000)
    await node.start()

    async def told():
        return "zzz-corporate.conf says InhibitDelayMaxSec=8" in node.log.read_text()

    await node.until(told, "the rival to be named")
    await node.logind.power_off()
    start = await node.logind.wait_for_start()
    [record] = node.records()
    assert record.granted == 8
    assert 1 < record.phases[0].given <= 3.95, "the critical phase keeps 4 s"
    assert record.phases[2].end is PhaseEnd.DONE
    assert node.when("dns", "exit") <= start.at + 0.02


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of reboot(2) is x86-64's")
@pytest.mark.skipif(os.geteuid() != 0, reason="shutdown(8) asks polkit where it is not root")
@pytest.mark.parametrize(
    ("command", "target"),
    [
        (("shutdown", "-h", "now"), "poweroff.target"),
        (("shutdown", "-P", "+0"), "poweroff.target"),
        (("systemctl", "poweroff"), "poweroff.target"),
        (("systemctl", "reboot"), "reboot.target"),
        (("poweroff",), "poweroff.target"),
        (("reboot",), "reboot.target"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else value,
)
async def test_the_commands_that_logind_serves(node, command, target):
    """Run in a cage in which the kernel refuses reboot(2), which is asked with a number that means nothing."""
    ask = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.syscall(169, 0, 0, 0, 0); print(ctypes.get_errno())"
    asked = await asyncio.to_thread(node.logind.run_caged, sys.executable, "-c", ask)
    assert int(asked.stdout) == errno.EPERM, "nothing is run where the machine could be rebooted"
    node.config.write_text(PATIENT)
    (node.logind.root / "run/systemd/system").mkdir()  # sd_booted(3) is true, in the cage only
    node.add("web", takes=1)
    await node.start()
    await asyncio.to_thread(node.logind.run_caged, *command)
    start = await node.logind.wait_for_start()
    assert start.arguments[0] == target
    assert start.at >= node.when("web", "exit") - 0.02


async def test_a_scheduled_shutdown(node):
    node.config.write_text(PATIENT)
    three(node)
    await node.start()
    begins = time.clock_gettime(time.CLOCK_BOOTTIME) + 1.5
    await node.logind.schedule("reboot", 1.5)
    start = await node.logind.wait_for_start()
    assert node.when("web", "TERM") >= begins - 0.02, "a schedule is not a shutdown yet"
    assert start.arguments[0] == "reboot.target"
    assert in_order(node)
    assert node.records()[0].how == "reboot"


async def test_a_cancelled_schedule_ends_nothing(node):
    three(node)
    await node.start()
    await node.logind.schedule("poweroff", 4)
    await node.logind.cancel_schedule()
    await asyncio.sleep(5)
    assert node.count("web", "TERM") == 0
    assert node.records() == []


async def test_the_api(node):
    node.config.write_text(PATIENT)
    three(node)
    await node.start()
    await node.logind.reboot()
    assert (await node.logind.wait_for_start()).arguments[0] == "reboot.target"
    assert in_order(node)


async def test_cancelled_in_the_middle(node):
    """systemd refuses the job: PrepareForShutdown(false) comes while somebody else's lock still holds the machine."""
    node.config.write_text(PATIENT)
    three(node)
    node.add("slow", takes=8)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("slow", "TERM")
    await asyncio.to_thread(node.logind.restart_logind)  # 252 cancels in no other way before the locks are gone
    await node.until_saw("slow", "exit")
    await node.until(node.armed, "the lock")

    async def ready():
        return node.ready()["status"] == "True"

    await node.until(ready, "the node to be ready again")
    await asyncio.sleep(2)
    assert node.count("db", "TERM") == 0
    assert node.count("dns", "TERM") == 0
    assert await node.logind.starts() == []
    assert node.status("web")["phase"] == "Failed", "what has ended stays ended"
    assert await node.lock_holders() == ["lastcall"]
    [record] = node.records()
    assert record.outcome is ShutdownOutcome.CANCELLED
    await node.logind.power_off()
    start = await node.logind.wait_for_start()
    assert node.when("db", "exit") <= node.when("dns", "TERM")
    assert node.when("dns", "exit") <= start.at + 0.02


async def test_cancelled_after_the_release(node):
    """The job to power off fails: the machine stays, and so does the node, armed anew."""
    node.add("web")
    node.add("dns", priority=2_000_000_000)
    await node.logind.set_mode(SystemdResponse.FAIL)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("dns", "exit")

    async def ready():
        return node.ready()["status"] == "True" and await node.lock_holders() == ["lastcall"]

    await node.until(ready, "the node to be ready and armed again")
    [record] = node.records()
    assert record.outcome is ShutdownOutcome.CANCELLED


async def test_a_second_agent_is_refused(node):
    await node.start()
    command = [sys.executable, "-m", "lastcall", "lab", "node", f"--manifests={node.manifests}"]
    command += [f"--config={node.config}", f"--state-dir={node.state}", "--metrics-bind-address=0"]
    second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, told = await asyncio.wait_for(second.communicate(), 60)
    assert second.returncode == 3
    assert f"another lastcall agent (pid {node.process.pid})".encode() in told


async def test_sigterm_at_rest_gives_the_lock_back(node):
    node.add("web")
    await node.start()
    assert await node.stop() == 0
    assert await node.lock_holders() == []
    assert node.count("web", "TERM") == 0, "the pods live on"


async def test_sighup_takes_up_a_new_configuration_and_refuses_a_bad_one(node):
    import signal

    await node.start()
    node.config.write_text("kind: AgentConfiguration\nshutdownGracePeriod: 30\n")
    node.process.send_signal(signal.SIGHUP)

    async def refused():
        return "stays unchanged" in node.log.read_text()

    await node.until(refused, "the bad configuration to be refused")
    assert await node.property("max_delay") == 16
    node.config.write_text(
        "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 40s\n"
        "shutdownGracePeriodCriticalPods: 10s\n"
    )
    node.process.send_signal(signal.SIGHUP)

    async def raised():
        return await node.property("max_delay") == 40

    await node.until(raised, "the limit to be raised")
    assert node.process.returncode is None
