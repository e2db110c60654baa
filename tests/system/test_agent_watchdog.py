"""``lastcall agent`` with a watchdog in its configuration, at a lab's API server. No device is opened: there is none."""

import asyncio
import os
import signal
import sys

import pytest
from support.lab_process import LabProcess

from lastcall import names
from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.resources import LEASES, NAMESPACES
from lastcall.errors import NotFound
from lastcall.model.watchdog_lease import AgentLease

pytestmark = pytest.mark.timeout(270)

CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 20s
shutdownGracePeriodCriticalPods: 10s
watchdog: {{device: {device}}}
"""


@pytest.fixture
def lab(tmp_path):
    lab = LabProcess(tmp_path / "lab")
    try:
        lab.start()
        yield lab
    finally:
        lab.kill()


async def agent(directory, *arguments):
    """The program, without a logind and a container runtime."""
    (directory / "agent.yaml").write_text(CONFIG.format(device=directory / "watchdog0"))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lastcall", "agent", "--config", directory / "agent.yaml"),
        *("--state-dir", directory / "state", "--node-name", "n1", "--metrics-bind-address", "0"),
        *("--container-runtime-endpoint", f"unix://{directory}/cri.sock", "--kubelet-unit", ""),
        *arguments,
        env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={directory}/bus"},
        stderr=asyncio.subprocess.PIPE,
    )


async def test_it_says_in_its_lease_why_it_is_not_armed(lab, tmp_path):
    access = kubeconfig.find(SystemClock(), {}, kubeconfig=str(lab.kubeconfig))
    http = Http(access.endpoint, access.credentials)
    client = Client(http)
    await client.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
    process = await agent(tmp_path, "--kubeconfig", lab.kubeconfig)
    try:
        why = ""
        async with asyncio.timeout(60):
            while "No such file or directory" not in why:
                await asyncio.sleep(0.1)
                try:
                    lease = await client.get(LEASES.read_as(AgentLease), "n1", namespace=names.NODES_NAMESPACE)
                except NotFound:
                    continue
                why = lease.promise.why if lease.promise else ""
        assert not lease.promise.armed
        process.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(process.communicate(), 60)
    finally:
        http.close()
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 0, said.decode()
    assert "watchdog: not armed:" in said.decode()


async def test_without_an_api_server_it_does_not_begin(tmp_path):
    process = await agent(tmp_path, "--kubeconfig", tmp_path / "none")
    try:
        _, said = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 2
    assert "none: cannot be read: No such file or directory" in said.decode()
