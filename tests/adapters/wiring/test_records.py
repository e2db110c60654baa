"""A node's last word over TLS, by a kubeconfig, as the agent writes it beside a kubelet."""

import pytest
from support.agents import shutdown_records
from support.lab.up_client import client_of, served
from support.lab.up_process import LabProcess

from lastcall.adapters.kube.resources import DEFINITIONS, NODE_SHUTDOWNS
from lastcall.errors import InvalidInput
from lastcall.manifests import resource_definitions
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.wiring.records import shutdown_recorder


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path)
    process.start()
    yield process
    process.kill()


async def test_it_is_written_where_the_kubeconfig_says(lab):
    with client_of(lab) as client:
        await client.create(DEFINITIONS, resource_definitions.node_shutdown_definition())
        await served(lambda: client.list(NODE_SHUTDOWNS))
        async with shutdown_recorder("node-1", str(lab.kubeconfig)) as shutdowns:
            for event in shutdown_records.dozen():
                shutdowns.record_event(event)
            await shutdowns.wait_until_written()
        found = await client.get(NODE_SHUTDOWNS.with_shape(NodeShutdown), "node-1")
        assert found.status.outcome.value == "Completed"


async def test_a_kubeconfig_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        async with shutdown_recorder("node-1", str(tmp_path / "nowhere")):
            pass
