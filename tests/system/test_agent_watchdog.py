"""``lastcall agent`` with a watchdog in its configuration, at a lab's API server. No device is opened: there is none."""

import asyncio

import pytest
from support.agents.agent_process import agent, ended, running
from support.lab.up_process import LabProcess

from lastcall import names
from lastcall.adapters.kube.resources import LEASES
from lastcall.errors import NotFound
from lastcall.model.watchdog_lease import AgentLease

pytestmark = pytest.mark.timeout(270)

CONFIG = "watchdog: {{device: {device}}}\n"


@pytest.fixture
def lab(tmp_path):
    lab = LabProcess(tmp_path / "lab")
    try:
        lab.start()
        yield lab
    finally:
        lab.kill()


async def test_it_says_in_its_lease_why_it_is_not_armed(lab, tmp_path):
    async with running(lab, tmp_path, CONFIG.format(device=tmp_path / "watchdog0")) as (process, client):
        why = ""
        async with asyncio.timeout(60):
            while "No such file or directory" not in why:
                await asyncio.sleep(0.1)
                try:
                    lease = await client.get(LEASES.with_shape(AgentLease), "n1", namespace=names.NODES_NAMESPACE)
                except NotFound:
                    continue
                why = lease.promise.why if lease.promise else ""
        assert not lease.promise.armed
        said = await ended(process)
    assert "watchdog: not armed:" in said


async def test_without_an_api_server_it_does_not_begin(tmp_path):
    process = await agent(tmp_path, CONFIG.format(device=tmp_path / "watchdog0"), "--kubeconfig", tmp_path / "none")
    try:
        _, said = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 2
    assert "none: cannot be read: No such file or directory" in said.decode()
