"""A node's last word over TLS, by a kubeconfig, as the agent writes it beside a kubelet."""

import asyncio

import pytest
from support import records
from support.lab_process import LabProcess

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.resources import DEFINITIONS, NODE_SHUTDOWNS
from lastcall.errors import InvalidInput, NotFound
from lastcall.manifests import definitions
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.wiring_records import recorded


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path)
    process.start()
    yield process
    process.kill()


async def served(client):
    """A kind is served a moment after its definition was made."""
    for _ in range(600):
        try:
            return await client.list(NODE_SHUTDOWNS)
        except NotFound:
            await asyncio.sleep(0.1)
    raise AssertionError


async def test_it_is_written_where_the_kubeconfig_says(lab):
    access = kubeconfig.load([lab.kubeconfig], SystemClock())
    http = Http(access.endpoint, access.credentials)
    try:
        await Client(http).create(DEFINITIONS, definitions.node_shutdown())
        await served(Client(http))
        async with recorded("node-1", str(lab.kubeconfig)) as shutdowns:
            for event in records.dozen():
                shutdowns.hear(event)
            await shutdowns.written()
        found = await Client(http).get(NODE_SHUTDOWNS.read_as(NodeShutdown), "node-1")
        assert found.status.outcome.value == "Completed"
    finally:
        http.close()


async def test_a_kubeconfig_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        async with recorded("node-1", str(tmp_path / "nowhere")):
            pass
