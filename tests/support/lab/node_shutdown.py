"""A node in virtual time with two pods on it, and the button of its machine."""

from support.agents.virtual_machine import Disk
from support.agents.virtual_parts import phases

from lastcall.graceful.agent import AgentPorts, ShutdownAgent
from lastcall.graceful.config import AgentConfig
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.kubelet.node.node_face import KubeletNodeFace

TWO = phases((0, 20), (2_000_000_000, 10))
CRITICAL = {"priorityClassName": "system-node-critical"}


def with_agent(node, groups=TWO, logind=None, holder=None, disk=None):
    """A machine with lastcall's agent on it."""
    logind = logind or FakeLogind(node.clock)
    face = KubeletNodeFace(node.kubelet, node.clock)
    face.hold_pods()
    agent = ShutdownAgent(
        AgentConfig(kind="AgentConfiguration", groups=groups),
        AgentPorts(
            clock=node.clock,
            logind=logind,
            keeper=FakeLockKeeper(holder or FakeLockHolder(logind, node.clock)),
            limit_files=logind.files,
            runtime=node.runtime,
            node=face,
            journals=disk or Disk(),
        ),
        node_name="n1",
        boot_id=node.kubelet.profile.boot_id,
        listeners=[face.hear],
        on_status=face.first_look,
    )
    node.agent = node.group.start(agent.run(), "agent")
    return logind


async def pods(node):
    """One of each phase, and both ready."""
    await node.started("app", terminationGracePeriodSeconds=30)
    await node.started("dns", **CRITICAL)
    await node.until(lambda: node.ready("app") and node.ready("dns"))
    await node.clock.sleep(1)


async def off(node, logind):
    """Seconds from the button to the end."""
    begin = node.clock.boottime()
    await logind.power_off()
    return (await logind.wait_for_start(seconds=300)).at - begin


def at(node, name, what):
    """When that reached the pod first."""
    return next((when for when, kind in node.deliveries(name) if kind == what), None)
