"""A node of the lab goes down and leaves its last word in the API, before its machine is off."""

import pytest
from support.lab.real_machines import Lab

from lastcall.adapters.kube.resources import DEFINITIONS, NODE_SHUTDOWNS
from lastcall.manifests import resource_definitions
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.shutdown import PodOutcome, ShutdownState

pytestmark = pytest.mark.timeout(270)

CONFIG = b"""\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 10s
shutdownGracePeriodCriticalPods: 5s
"""


@pytest.fixture
async def lab(tmp_path):
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    async with Lab(tmp_path, "processes", config=CONFIG).up() as lab:
        await lab.client.create(DEFINITIONS, resource_definitions.node_shutdown_definition())
        yield lab


async def test_the_machine_goes_when_its_last_word_is_written(lab):
    await lab.add("web", takes=1)
    await lab.add("dns", takes=0, priorityClassName="system-node-critical")
    await lab.until_ready("web", "dns")
    pods = {name: (await lab.pod(name))["metadata"]["uid"] for name in ("web", "dns")}
    boot_id = (await lab.node())["status"]["nodeInfo"]["bootID"]
    await lab.machines.switch("lab-1", "button")
    await lab.until_off()
    said = await lab.client.get(NODE_SHUTDOWNS.with_shape(NodeShutdown), "lab-1")
    assert (said.spec.node_name, said.spec.boot_id) == ("lab-1", boot_id)
    assert pods.items() <= {one.name: one.uid for one in said.status.pods}.items()
    assert set(pods.values()) <= said.ended_pod_uids
    assert {one.outcome for one in said.status.pods if one.name in pods} == {PodOutcome.GRACEFUL}
    assert said.status.start_time < said.status.deadline_time
    assert said.status.state is ShutdownState.ENDED, "as kubectl shows it while the machine is off"
    await lab.machines.switch("lab-1", "on")

    async def returned():
        found = await lab.client.get(NODE_SHUTDOWNS.with_shape(NodeShutdown), "lab-1")
        return found.status.state is ShutdownState.RETURNED and found.spec.boot_id == boot_id

    await lab.until(returned)
