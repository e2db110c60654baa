"""``lastcall agent`` as a program of its own at a lab's API server, without a logind and a container runtime."""

import asyncio
import contextlib
import os
import signal
import sys

from lastcall import names
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.resources import NAMESPACES

CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 20s
shutdownGracePeriodCriticalPods: 10s
"""


async def agent(directory, more, *arguments, environment=None):
    """The program, for node n1, with ``more`` in its configuration."""
    (directory / "agent.yaml").write_text(CONFIG + more)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lastcall", "agent", "--config", directory / "agent.yaml"),
        *("--state-dir", directory / "state", "--node-name", "n1", "--metrics-bind-address", "0"),
        *("--container-runtime-endpoint", f"unix://{directory}/cri.sock", "--kubelet-unit", ""),
        *arguments,
        env={**os.environ, **(environment or {}), "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={directory}/bus"},
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process):
    """What it has said, when it is told to end and ends well."""
    process.send_signal(signal.SIGTERM)
    _, said = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, said.decode()
    return said.decode()


@contextlib.asynccontextmanager
async def running(lab, directory, more, environment=None):
    """The program, and a client at the same API server, in which agents have their namespace."""
    access = kubeconfig.find_access(SystemClock(), {}, kubeconfig=str(lab.kubeconfig))
    with contextlib.closing(HttpsTransport(access.endpoint, access.credentials)) as http:
        client = Client(http)
        await client.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
        process = await agent(directory, more, "--kubeconfig", lab.kubeconfig, environment=environment)
        try:
            yield process, client
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
