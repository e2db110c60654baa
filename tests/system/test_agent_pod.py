"""The agent's own pod: the container that the DaemonSet describes, killed, stopped and restarted in a shutdown.

With the real logind, a real systemd that runs the host's services, and containerd. What plays the kubelet is a service of
that systemd, which restarts the agent's container.
"""

import asyncio
import os
import signal
import time

import msgspec
import pytest
from support.agents import container_restarter
from support.agents.agent_pod import AgentPod, agent_processes, restarter_unit, wait_until
from support.agents.system_node import PATIENT, Saw, manifest
from support.host import service_manager
from support.host.logind import patient_logind  # noqa: F401  (a fixture)
from support.host.real_host import RealHost, real_host
from support.runtimes import containerd_world
from support.runtimes.private_containerd import shared_containerd

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.session import SystemLogind
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownOutcome
from lastcall.names import HOST_LOCK, HOST_RESUME, PRIORITY_ANNOTATION
from lastcall_lab.containerd import LabCriRuntime

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-agent-pod")]

KUBELET = "kubelet.service"


class Node:
    """One node with the agent's pod and pods that note what reaches them."""

    def __init__(self, directory, host: RealHost, containerd, agent: AgentPod):
        self.host, self.containerd, self.agent = host, containerd, agent
        self.truth = directory / "truth" / "log"
        self.truth.parent.mkdir()
        self.truth.touch()
        for path in (directory, self.truth.parent, self.truth):
            path.chmod(0o777)

    async def start_pods(self, **takes):
        """Pods by name, with the seconds that they need after SIGTERM; each ends in a phase of its own."""
        runtime = LabCriRuntime(
            self.containerd.endpoint,
            SystemClock(),
            directory=self.containerd.directory,
            cgroup=self.containerd.cgroup,
        )
        await runtime.open()
        for name, priority in zip(takes, (0, 1000, 2_000_000_000), strict=False):
            await runtime.start_pod(self._pod(name, priority, takes[name]))
        await runtime.close()
        await wait_until(self.saw_all("start", *takes), self.story)

    def _pod(self, name, priority, takes):
        fields = manifest(name, self.truth, priority=priority, takes=takes, uid=f"uid-{name}")
        fields["metadata"]["annotations"] = {PRIORITY_ANNOTATION: str(priority)}
        fields["metadata"]["namespace"] = "default"
        fields["spec"]["hostNetwork"] = True
        return msgspec.convert(fields, Pod)

    async def start_agent(self):
        """By the kubelet."""
        await self.agent.create_sandbox()
        await self.host.start(KUBELET)
        await wait_until(self.armed(1), self.story)

    def armed(self, lives):
        async def condition():
            return self.agent.says(r'"armed: \S+ for the pods') >= lives

        return condition

    def lock_is_held(self, logind):
        async def condition():
            session = await SystemLogind(logind.address).open()
            try:
                return [one.who for one in await session.list_inhibitors()] == ["lastcall"]
            finally:
                session.close()

        return condition

    def saw(self):
        return [Saw(float(at), pod, what) for at, pod, what in (x.split() for x in self.truth.read_text().splitlines())]

    def saw_all(self, what, *pods):
        async def condition():
            return {s.pod for s in self.saw() if s.what == what} >= set(pods)

        return condition

    def times(self, *wanted):
        """When each of these, a pod and what happened, was noted; each was once."""
        found = []
        for pod, what in wanted:
            [at] = [s.at for s in self.saw() if (s.pod, s.what) == (pod, what)]
            found.append(at)
        return found

    def both_services(self):
        async def condition():
            return await self.host.running(HOST_LOCK, HOST_RESUME) == [HOST_LOCK, HOST_RESUME]

        return condition

    async def went_down_in_order(self, *pods):
        await wait_until(self.host.went_down, self.story, 120)
        times = self.times(*((pod, what) for pod in pods for what in ("TERM", "exit")))
        assert times == sorted(times), self.story()
        assert time.clock_gettime(time.CLOCK_BOOTTIME) >= times[-1]

        async def completed():  # the release is written after the machine may go down
            records = await asyncio.to_thread(self.agent.records)
            return [record.outcome for record in records] == [ShutdownOutcome.COMPLETED]

        await wait_until(completed, self.story, 60)

    def story(self):
        return f"{self.saw()}\n{self.agent.log()[-6000:]}"


@pytest.fixture
def containerd():
    if reason := containerd_world.why_not() or service_manager.why_not():
        pytest.skip(reason)
    return shared_containerd()


@pytest.fixture
def host(containerd, tmp_path):
    (tmp_path / "node").mkdir()
    with real_host({KUBELET: restarter_unit(tmp_path / "node", containerd.endpoint)}) as found:
        yield found


@pytest.fixture
async def node(containerd, host, tmp_path):
    await host.until_answers()
    agent = AgentPod(tmp_path / "node", host.logind, containerd, config=PATIENT)
    yield Node(tmp_path, host, containerd, agent)
    async with host.open_units() as systemd:
        await systemd.stop_unit(KUBELET)
    agent.connection.close()
    await containerd.remove_pods()


async def going_down(node, **takes):
    """A shutdown in whose first phase a pod ends; the kubelet is stopped, and the host's services run."""
    await node.start_pods(**takes)
    await node.start_agent()
    await node.host.logind.power_off()
    await wait_until(node.saw_all("TERM", "web"), node.story)
    await wait_until(node.both_services(), node.story)
    assert await node.host.running(KUBELET) == []


async def test_the_whole_container_is_killed_in_the_middle(node):
    """As by the kernel's memory limit: the lock stays, the kubelet restarts the agent, which resumes the shutdown."""
    await going_down(node, web=8, db=1, dns=1)
    os.kill(await node.agent.process_1(), signal.SIGKILL)
    await node.went_down_in_order("web", "db", "dns")
    assert node.agent.says("resuming the shutdown") == 1
    assert node.agent.says("no lock is held any more") == 0
    assert len(await node.agent.containers()) == 2
    assert await node.host.running(KUBELET, HOST_LOCK, HOST_RESUME) == [], node.story()


async def test_the_kernel_ends_the_container_for_its_memory(node):
    await going_down(node, web=20, db=1)
    before = await node.agent.running()
    await node.agent.exhaust_memory()
    status = await node.agent.exit_status(before)
    assert (status.reason, status.exit_code) == ("OOMKilled", 137)
    await node.went_down_in_order("web", "db")
    assert node.agent.says("resuming the shutdown") == 1
    assert len(await node.agent.containers()) == 2


async def test_the_agent_alone_is_killed_in_the_middle(node):
    """Process 1 of its container restarts it, and the kubelet stays stopped."""
    await going_down(node, web=8, db=1)
    [first, *_] = agent_processes(await node.agent.process_1())
    os.kill(first, signal.SIGKILL)
    await node.went_down_in_order("web", "db")
    assert node.agent.says("the agent has ended with 137; it is started again") == 1
    assert node.agent.says("resuming the shutdown") == 1
    assert len(await node.agent.containers()) == 1


async def test_an_upgrade_of_the_daemon_set_in_the_middle(node):
    """A kubelet that deletes the pod sends SIGTERM: the agent ends after the shutdown that it has begun."""
    await going_down(node, web=5, db=1)
    stopping = asyncio.create_task(node.agent.stop(grace=60))
    await asyncio.sleep(1)
    assert not stopping.done()
    await node.went_down_in_order("web", "db")
    await stopping
    [container] = await node.agent.containers()
    assert container.state == cri.CONTAINER_EXITED
    assert node.agent.says("it is started again") == 0
    assert node.agent.says("resuming the shutdown") == 0


async def test_an_upgrade_that_kills_the_agent_in_the_middle(node):
    """Where the kubelet cannot be stopped, its SIGKILL follows: the next container resumes the shutdown."""
    await going_down(node, web=8, db=1)
    await node.agent.stop(grace=1)
    await node.went_down_in_order("web", "db")
    assert node.agent.says("resuming the shutdown") == 1
    assert len(await node.agent.containers()) == 2


async def test_stopped_at_rest_it_releases_the_lock(node):
    await node.start_agent()
    async with node.host.open_units() as systemd:
        await systemd.stop_unit(KUBELET)
    await node.agent.stop(grace=60)
    [container] = await node.agent.containers()
    status = await node.agent.exit_status(container.id)
    assert status.exit_code == 0
    await node.host.logind.power_off()
    await wait_until(node.host.went_down, node.story)


async def test_bus_and_runtime_are_restarted_under_the_pod(containerd, patient_logind, tmp_path):  # noqa: F811
    """Their sockets are made anew: the pod sees them in the directories that it mounts."""
    agent = AgentPod(tmp_path / "node", patient_logind, containerd, config=PATIENT)
    node = Node(tmp_path, None, containerd, agent)
    await agent.create_sandbox()
    await container_restarter.ensure_running(agent.connection, agent.read_request())
    await wait_until(node.armed(1), node.story)
    await asyncio.to_thread(patient_logind.stop_logind)
    await asyncio.to_thread(patient_logind.stop_bus)
    await asyncio.to_thread(containerd.restart)
    await asyncio.to_thread(patient_logind.start_bus)
    await asyncio.to_thread(patient_logind.start_logind)
    await node.start_pods(web=1, db=1)
    await wait_until(node.lock_is_held(patient_logind), node.story)
    await patient_logind.power_off()
    await patient_logind.wait_for_start(seconds=120)
    times = node.times(("web", "TERM"), ("web", "exit"), ("db", "TERM"), ("db", "exit"))
    assert times == sorted(times)
    agent.connection.close()
    await containerd.remove_pods()
