"""The agent's watchdog mode as it is wired: over TLS to an API server, and told by the agent whether the node goes down."""

import asyncio
import base64
import contextlib
import dataclasses
import json
from random import Random

import pytest
from support.agents.virtual_parts import RecordingNode
from support.kube.api_servers import TOKEN, lab
from support.lab import https_server

from lastcall import names
from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.datagrams import bind_udp
from lastcall.adapters.host.watchdog_device import WatchdogDeviceFile
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES, NAMESPACES, NODES, SECRETS
from lastcall.errors import InvalidInput
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_lease import AgentLease
from lastcall.model.watchdog_peers import PeerSettings, fingerprint
from lastcall.watchdog.keeper_status import KeeperStatus
from lastcall.wiring.agent import AgentProgram, AgentSettings
from lastcall.wiring.watchdog import watchdog_keeper
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.demo import demo_logind
from lastcall_lab.fakes.watchdog import FakeWatchdog
from lastcall_lab.processes import ProcessRuntime

pytestmark = pytest.mark.timeout(180)

CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 10s
shutdownGracePeriodCriticalPods: 5s
watchdog: {leaseSeconds: 40}
"""


async def until(condition, seconds=60):
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


class Cluster:
    """An API server over TLS with a kubeconfig for it."""

    def __init__(self, server, url, authority, path):
        self.admin = Client(InProcessTransport(server), manager="kubectl")
        (path.parent / "ca.crt").write_text(authority)
        path.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "ca.crt"}}],
                    "users": [{"name": "u", "user": {"token": TOKEN}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        self.kubeconfig = str(path)

    async def promise(self):
        found = await self.admin.list(LEASES.with_shape(AgentLease), namespace=names.NODES_NAMESPACE)
        return found.items[0].promise if found.items else None


@pytest.fixture
async def cluster(tmp_path):
    server = lab()
    async with https_server.serving(server, tmp_path) as (url, authority):
        made = Cluster(server, url, authority, tmp_path / "kubeconfig")
        for name in (names.SYSTEM_NAMESPACE, names.NODES_NAMESPACE):
            await made.admin.create(NAMESPACES, {"metadata": {"name": name}})
        yield made


async def test_it_is_armed_and_taken_back_over_tls(cluster):
    settings = WatchdogSettings(device="/dev/watchdog0", lease_seconds=60, pet_seconds=8, timeout_seconds=60)
    dog = FakeWatchdog(lambda: None)
    told = []

    async def armed():
        promise = await cluster.promise()
        return promise is not None and promise.armed

    async with watchdog_keeper(
        settings, told.append, node_name="n1", kubeconfig=cluster.kubeconfig, kernel=dog
    ) as keeper:
        keeper.suspend("")
        await until(armed)
        assert dog.running
        assert (await cluster.promise()).boot_id == boot_id()
    assert not dog.running
    promise = await cluster.promise()
    assert (promise.armed, promise.why) == (False, "the agent ends")
    assert any(one.armed for one in told)
    assert not told[-1].armed


async def test_with_peers_its_lease_says_by_which_nodes_it_counts(cluster):
    probe = bind_udp(f"127.{Random().randrange(1, 250)}.7.7", 0)
    address, port = probe.bound_address
    probe.close()
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    await cluster.admin.create(NODES, {"metadata": {"name": "n1"}, "status": status})
    await cluster.admin.patch(NODES, "n1", {"status": status}, subresource="status")
    key = {"metadata": {"name": names.PEERS_SECRET}, "data": {"key": base64.b64encode(b"k" * 32).decode()}}
    await cluster.admin.create(SECRETS, key, namespace=names.SYSTEM_NAMESPACE)
    settings = WatchdogSettings(
        device="/dev/watchdog0", lease_seconds=60, pet_seconds=5, timeout_seconds=60, peers=PeerSettings(port=port)
    )

    async def counted():
        promise = await cluster.promise()
        return promise is not None and promise.peers is not None

    dog = FakeWatchdog(lambda: None)
    async with watchdog_keeper(
        settings, lambda _: None, node_name="n1", kubeconfig=cluster.kubeconfig, kernel=dog
    ) as keeper:
        keeper.suspend("")
        await until(counted)
        promise = await cluster.promise()
        assert promise.peers.nodes == fingerprint(["n1"])
        assert promise.armed_timing.peers
    bind_udp(address, port).close()  # it was given back


async def test_a_machine_without_a_watchdog(cluster, tmp_path):
    settings = WatchdogSettings(device=str(tmp_path / "watchdog7"))
    told = []

    async def tried():
        return any("No such file or directory" in one.sentence for one in told)

    async with watchdog_keeper(settings, told.append, node_name="n1", kubeconfig=cluster.kubeconfig) as keeper:
        keeper.suspend("")
        await until(tried)
    assert not (await cluster.promise()).armed


async def test_without_an_api_server_that_is_named_it_does_not_begin(tmp_path, monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidInput, match="name a file by --kubeconfig"):
        async with watchdog_keeper(WatchdogSettings(), lambda _: None, node_name="n1"):
            pass


def test_what_is_no_watchdog_is_believed_nothing():
    """The real calls of the kernel, on a device that anybody may open."""
    device = WatchdogDeviceFile("/dev/null")
    info = device.arm(10)
    assert (info.timeout, info.survives_close) == (float("inf"), False)
    device.pet()
    assert device.disarm()
    assert not device.is_open


class Keeping:
    """Stands for the watchdog mode: it has had two rounds, and hears why the watchdog is not to be fed."""

    def __init__(self):
        self.held, self.settings = [], []

    def suspend(self, why):
        self.held.append(why)

    @contextlib.asynccontextmanager
    async def __call__(self, configured, on_round):
        self.settings.append(configured)
        told = KeeperStatus(
            armed=True, bound=85.0, accepted=1, failed=3, withheld=1, sentence="armed: it is a test", nodes=3
        )
        on_round(told)
        on_round(dataclasses.replace(told, accepted=2))
        yield self


async def test_the_agent_tells_it_whether_the_node_goes_down(tmp_path):
    keeping = Keeping()
    (tmp_path / "agent.yaml").write_text(CONFIG)
    clock = SystemClock()
    where = AgentSettings(config=tmp_path / "agent.yaml", state_dir=tmp_path / "state", node_name="n1", metrics=None)
    async with demo_logind.open_embedded_logind(clock, where.state_dir) as machine:
        program = AgentProgram(
            where,
            runtime=ProcessRuntime(where.state_dir, clock),
            node=RecordingNode(clock),
            logind=machine.logind,
            lock_keeper=machine.keeper,
            limit_files=machine.limit_files,
            watchdog=keeping,
        )
        running = asyncio.create_task(program.run())
        await program.wait_for_first_round()
        assert set(keeping.held) == {""}
        await machine.press()
        await machine.off()
        program.agent.request_stop()
        await running
    assert keeping.settings == [WatchdogSettings(lease_seconds=40)]
    assert keeping.held[-1] == "the node is shutting down"
    text = program._metrics.render_text().decode()
    for line in (
        "lastcall_watchdog_armed 1.0",
        "lastcall_watchdog_bound_seconds 85.0",
        "lastcall_watchdog_counted_nodes 3.0",
        'lastcall_watchdog_renewals_total{outcome="Accepted"} 2.0',
        'lastcall_watchdog_renewals_total{outcome="Failed"} 3.0',
        "lastcall_watchdog_withheld_total 1.0",
    ):
        assert line in text.splitlines()
