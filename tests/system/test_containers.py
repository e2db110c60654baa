"""A node goes down with real containers: containerd through CRI, systemd-logind, the program as a process."""

import asyncio
import os
import signal

import pytest
from support.agents.system_node import CONFIG, PATIENT, Node
from support.host.logind import private_logind  # noqa: F401  (fixtures)
from support.runtimes import containerd_world
from support.runtimes.private_containerd import shared_containerd

from lastcall.model.shutdown import PhaseEnd, PodOutcome

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-containers")]


@pytest.fixture
async def node(private_logind, tmp_path):  # noqa: F811
    if reason := containerd_world.why_not():
        pytest.skip(reason)
    containerd = await asyncio.to_thread(shared_containerd)
    node = Node(tmp_path, private_logind, endpoint=containerd.endpoint, config=PATIENT)
    for path in (tmp_path, node.truth.parent, node.truth):
        path.chmod(0o777)
    yield node
    await node.clean_up()
    await containerd.remove_pods()


def three(node, takes=2, **slower):
    node.add("web", takes=slower.get("web", takes), hook=1)
    node.add("db", priority=1000, takes=slower.get("db", takes))
    node.add("dns", priority=2_000_000_000, takes=slower.get("dns", takes))


async def gone_in_order(node):
    start = await node.logind.wait_for_start(seconds=120)
    times = [node.when("web", "hook-over")]
    times += [node.when(pod, what) for pod in ("web", "db", "dns") for what in ("TERM", "exit")]
    assert times == sorted(times)
    assert start.at >= times[-1] - 0.02


async def test_containers_end_in_order_and_then_the_machine_goes(node):
    three(node, takes=1)
    await node.start()
    await node.logind.power_off()
    await gone_in_order(node)
    record = await node.over()
    assert [phase.end for phase in record.phases] == [PhaseEnd.DONE] * 3
    assert [pod.outcome for pod in record.pods] == [PodOutcome.GRACEFUL] * 3
    assert node.status("web")["reason"] == "Terminated"
    assert node.status("web")["containerStatuses"][0]["state"] == {"terminated": {"exitCode": 0}}


async def test_a_sidecar_ends_after_the_main_container(node):
    node.add("mesh", takes=1, sidecar=1)
    await node.start()
    await node.logind.power_off()
    start = await node.logind.wait_for_start(seconds=120)
    times = [node.when("mesh", "TERM"), node.when("mesh", "exit"), node.when("mesh-sidecar", "TERM")]
    times += [node.when("mesh-sidecar", "exit"), start.at + 0.02]
    assert times == sorted(times)


async def test_dns_ends_after_the_pods_of_its_phase(node):
    node.add("dns", labels={"k8s-app": "kube-dns"}, hook=1)
    node.add("web", takes=2)
    await node.start()
    await node.logind.power_off()
    await node.logind.wait_for_start(seconds=120)
    times = [node.when("web", "TERM"), node.when("web", "exit")]
    times += [node.when("dns", what) for what in ("hook", "hook-over", "TERM")]
    assert times == sorted(times)
    assert [pod.outcome for pod in (await node.over()).pods] == [PodOutcome.GRACEFUL] * 2


async def test_a_container_that_ignores_sigterm_is_killed_before_the_next_phase(node):
    node.config.write_text(CONFIG)
    node.add("stubborn", grace=60, ignores_term=True)
    node.add("dns", priority=2_000_000_000, takes=1)
    await node.start()
    await node.logind.power_off()
    await node.logind.wait_for_start(seconds=120)
    [record] = node.records()
    stubborn = next(pod for pod in record.pods if pod.name == "stubborn")
    [main] = stubborn.containers
    assert (stubborn.outcome, main.exit_code) == (PodOutcome.KILLED, 137)
    assert (stubborn.asked, stubborn.grace) == (60, 6), "no more than its phase has"
    assert main.term < main.kill <= record.phases[0].ended <= record.phases[2].started
    assert node.when("dns", "TERM") >= record.boottime + main.kill - 0.02


@pytest.mark.parametrize("pod", ["web", "db", "dns"])
async def test_killed_in_each_phase_and_started_again(node, pod):
    three(node, **{pod: 8})  # it is not over when the agent is killed
    await node.start()
    await node.logind.power_off()
    await node.until_saw(pod, "TERM")
    await node.kill()
    await asyncio.sleep(0.3)
    assert await node.logind.starts() == [], "the lock outlives the agent"
    await node.start(wait=False)
    await gone_in_order(node)
    await node.over()


async def beside(node):
    """`lastcall agent` as on a cluster's node: it knows the pods from the CRI and from static manifests alone."""
    await node.start()
    await node.stop()
    config = node.directory / "kubelet.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"staticPodPath: {node.manifests}\n"
        "shutdownGracePeriodByPodPriority:\n"
        "- {priority: 0, shutdownGracePeriodSeconds: 40}\n"
        "- {priority: 1000, shutdownGracePeriodSeconds: 40}\n"
        "- {priority: 2000000000, shutdownGracePeriodSeconds: 40}\n"
    )
    await node.start_agent(config)


async def jobs(logind):
    """The jobs of units that systemd was given: what, unit, when."""
    members = ("StartTransientUnit", "StartUnit", "StopUnit")
    return [(call.member, call.arguments[0], call.at) for call in await logind.calls() if call.member in members]


KUBELET, TIMER = "kubelet.service", "lastcall-kubelet-start.timer"
DOWN = [("StartTransientUnit", TIMER), ("StopUnit", KUBELET)]
BACK = [("StartUnit", KUBELET), ("StopUnit", TIMER)]


async def test_the_agent_beside_somebody_elses_containers(node):
    three(node, takes=1)
    await beside(node)
    await node.logind.power_off()
    await gone_in_order(node)
    assert [job[:2] for job in await jobs(node.logind)] == [("StartUnit", "poweroff.target")], "there was no kubelet"


async def test_the_kubelet_is_stopped_before_the_first_sigterm(node):
    three(node, takes=1)
    await node.logind.run_unit(KUBELET)
    await beside(node)
    assert await jobs(node.logind) == []
    await node.logind.power_off()
    await gone_in_order(node)
    done = await jobs(node.logind)
    assert [job[:2] for job in done] == [*DOWN, ("StartUnit", "poweroff.target")]
    assert done[1][2] <= node.when("web", "hook") + 0.02


async def test_the_kubelet_is_started_when_the_shutdown_is_called_off(node):
    three(node)
    await node.logind.run_unit(KUBELET)
    await beside(node)
    await node.logind.power_off()
    await node.until_saw("web", "TERM")
    await asyncio.to_thread(node.logind.restart_logind)

    async def back():
        return [job[:2] for job in await jobs(node.logind)] == [*DOWN, *BACK]

    await node.until(back, "the kubelet to be started")
    assert await node.logind.starts() == []


async def test_the_agent_is_killed_and_the_shutdown_called_off_before_it_is_back(node):
    three(node)
    await node.logind.run_unit(KUBELET)
    await beside(node)
    await node.logind.power_off()
    await node.until_saw("web", "TERM")
    await node.kill()
    await asyncio.to_thread(node.logind.restart_logind)
    assert [job[:2] for job in await jobs(node.logind)] == DOWN
    await node.start_agent(node.directory / "kubelet.yaml")

    async def back():
        return [job[:2] for job in await jobs(node.logind)] == [*DOWN, *BACK]

    await node.until(back, "the kubelet to be started")


async def test_containerd_restarted_in_the_middle(node):
    """Containers live on without their runtime. What it is known to have stopped is looked at, and not stopped again."""
    containerd = await asyncio.to_thread(shared_containerd)
    node.add("web", takes=8)
    node.add("dns", priority=2_000_000_000, takes=1)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("web", "TERM")
    await asyncio.sleep(3)  # the agent makes sure that the stop was heard
    await asyncio.to_thread(containerd.restart)
    start = await node.logind.wait_for_start(seconds=120)
    assert (node.count("web", "TERM"), node.count("web", "exit")) == (1, 1)
    assert node.when("dns", "TERM") >= node.when("web", "exit")
    assert start.at >= node.when("dns", "exit") - 0.02
    record = await node.over()
    assert [pod.outcome for pod in record.pods] == [PodOutcome.GRACEFUL] * 2


HASTY = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 8}
- {priority: 1000, shutdownGracePeriodSeconds: 2}
- {priority: 2000000000, shutdownGracePeriodSeconds: 90}
"""


async def test_containerd_hangs_in_the_middle(node):
    """Phases go on by the clock, the record says why, and who has ended by itself does not count as killed."""
    containerd = await asyncio.to_thread(shared_containerd)
    node.config.write_text(HASTY)
    node.add("web", takes=1)
    node.add("db", priority=1000, takes=1)
    node.add("dns", priority=2_000_000_000, takes=1)
    await node.start()
    pid = containerd.pid

    async def last_phase():
        return "phase 3 begins" in node.log.read_text()

    await node.logind.power_off()
    await node.until_saw("web", "TERM")
    os.kill(pid, signal.SIGSTOP)
    try:
        await node.until(last_phase, "the last phase")
        assert node.count("db", "TERM") == 0, "there is nobody who would have sent it"
    finally:
        os.kill(pid, signal.SIGCONT)
    await node.logind.wait_for_start(seconds=120)
    record = await node.over()
    web = next(pod for pod in record.pods if pod.name == "web")
    assert (web.outcome, web.containers[0].exit_code) == (PodOutcome.GRACEFUL, 0)
    assert [phase.end for phase in record.phases] == [PhaseEnd.RAN_OUT, PhaseEnd.RAN_OUT, PhaseEnd.DONE]
    texts = [note.text for note in record.notes]
    assert any(text.startswith("the container runtime has not answered for") for text in texts)
    assert any(text.startswith("the container runtime answers again") for text in texts)
    assert "the container runtime has not answered for" in node.log.read_text()
    assert node.when("dns", "exit") >= node.when("web", "exit")
