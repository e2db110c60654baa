"""What the doctor finds in a cluster, over TLS."""

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import sys
from random import Random

import pytest
from support.lab.up_client import client_of, install_controller
from support.lab.up_process import LabProcess

from lastcall import names
from lastcall.adapters.doctor import address_probes, cluster_facts
from lastcall.adapters.host.datagrams import bind_udp
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import LEASES, NAMESPACES, NODES, PODS, SECRETS, VALIDATING_WEBHOOKS
from lastcall.doctor.facts import GuardInstallation, PolicyFacts, UnknownFact
from lastcall.errors import InvalidInput
from lastcall.manifests.guard_webhooks import guard_webhook_configuration, service_client
from lastcall.model.guard_webhooks import withdraw_webhooks
from lastcall.model.watchdog_lease import WatchdogPromise, to_annotations


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path)
    process.start()
    yield process
    process.kill()


async def create(lab, name, *command):
    spec = {"nodeName": "control-1", "containers": [{"name": "c", "image": "i", "command": [*command]}]}
    with client_of(lab) as client:
        await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="kube-system")


async def test_the_controller_managers_among_the_pods_of_kube_system(lab):
    path = str(lab.kubeconfig)
    assert await cluster_facts.list_controller_managers(path) == ()
    await create(lab, "kube-controller-manager-control-1", "kube-controller-manager", "--v=2")
    await create(lab, "etcd-control-1", "etcd")
    [found] = await cluster_facts.list_controller_managers(path)
    assert (found.where, found.detaches_on_timeout) == ("pod kube-system/kube-controller-manager-control-1", True)
    lab.kill()
    assert isinstance(await cluster_facts.list_controller_managers(path), UnknownFact)


async def test_what_the_fence_policies_say(lab):
    path = str(lab.kubeconfig)
    assert await cluster_facts.list_fence_policies(path) == ()
    policy = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": "p"}, "spec": {}}
    status = {"conditions": [], "fencers": []}
    for kind, word in (("Accepted", "True"), ("FencersWorking", "False")):
        more = {"reason": "Failed", "lastTransitionTime": "2026-11-21T12:00:00Z"}
        status["conditions"].append({"type": kind, "status": word, "message": f"{kind}\nit is", **more})
    with client_of(lab) as client:
        await install_controller(client, policy)
        assert await cluster_facts.list_fence_policies(path) == (PolicyFacts(name="p"),)
        await client.patch(POLICIES, "p", {"status": status}, subresource="status")
    assert await cluster_facts.list_fence_policies(path) == (PolicyFacts(name="p", unmet=("FencersWorking it is",)),)
    lab.kill()
    assert isinstance(await cluster_facts.list_fence_policies(path), UnknownFact)


async def test_how_the_guards_webhooks_stand(lab):
    path = str(lab.kubeconfig)
    assert await cluster_facts.find_guard(path) == GuardInstallation()
    with client_of(lab) as client:
        made = await client.create(VALIDATING_WEBHOOKS, guard_webhook_configuration(service_client("lastcall-system")))
        held = GuardInstallation(is_installed=True, failure_policies=("Ignore", "Ignore"))
        assert await cluster_facts.find_guard(path) == held
        await client.update(VALIDATING_WEBHOOKS, "lastcall-guard", withdraw_webhooks(made))
    assert await cluster_facts.find_guard(path) == GuardInstallation(is_installed=True, is_withdrawn=True)
    lab.kill()
    assert isinstance(await cluster_facts.find_guard(path), UnknownFact)


async def node(client, name, address):
    status = {"addresses": [{"type": "InternalIP", "address": address}]} if address else {}
    await client.create(NODES, {"metadata": {"name": name}})
    await client.patch(NODES, name, {"status": status}, subresource="status")


@contextlib.contextmanager
def taken(address):
    """A port there that is another program's."""
    other = bind_udp(address, 0)
    try:
        yield other.bound_address[1]
    finally:
        other.close()


async def test_what_the_watchdogs_peers_have_to_work_with(lab):
    with client_of(lab) as client, taken("127.0.0.1") as port:
        empty = await cluster_facts.probe_watchdog_peers(str(lab.kubeconfig), port)
        assert (empty.keys, empty.promises) == ((), {})
        for name in (names.SYSTEM_NAMESPACE, names.NODES_NAMESPACE):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        await node(client, "here", "127.0.0.1")
        await node(client, "there", "127.0.0.2")
        await node(client, "nowhere", "")
        keys = {"old": base64.b64encode(b"k" * 31).decode(), names.PEERS_KEY: base64.b64encode(b"k" * 32).decode()}
        secret = {"metadata": {"name": names.PEERS_SECRET}, "data": keys}
        await client.create(SECRETS, secret, namespace=names.SYSTEM_NAMESPACE)
        said = WatchdogPromise(boot_id="b", why="no device")
        for name, annotations in (("here", to_annotations(said)), ("there", {})):
            lease = {"metadata": {"name": name, "annotations": annotations}}
            await client.create(LEASES, lease, namespace=names.NODES_NAMESPACE)
        found = await cluster_facts.probe_watchdog_peers(str(lab.kubeconfig), port)
    assert {name: found.nodes[name] for name in ("here", "there", "nowhere")} == {
        "here": "127.0.0.1",
        "there": "127.0.0.2",
        "nowhere": "",
    }
    assert found.keys == (32, 31)
    assert found.promises == {"here": said}
    assert found.here.keys() == {"here"}, "this machine sends to 127.0.0.2 from 127.0.0.1"
    assert not found.here["here"].works
    assert found.here["here"].message == f"UDP 127.0.0.1 port {port}: Address already in use"
    lab.kill()
    lost = await cluster_facts.probe_watchdog_peers(str(lab.kubeconfig), port)
    assert [type(one) for one in (lost.nodes, lost.keys, lost.promises)] == [UnknownFact] * 3
    assert lost.here == {}


def test_a_port_is_tried_and_given_back():
    address = f"127.{Random().randrange(1, 250)}.{Random().randrange(1, 250)}.1"  # nobody else's meanwhile
    with taken(address) as port:
        assert not address_probes.try_bind(address, port).works
    assert [address_probes.try_bind(address, port).works for _ in range(2)] == [True, True]


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "node-1", ""])
def test_addresses_that_are_not_this_machines(address):
    assert not address_probes.is_own_address(address)


async def test_a_kubeconfig_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        await cluster_facts.list_controller_managers(str(tmp_path / "nowhere"))


def test_that_is_wrong_usage(tmp_path):
    line = [sys.executable, "-m", "lastcall", "doctor", f"--kubeconfig={tmp_path / 'nowhere'}"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=25)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere" in done.stderr


async def test_the_command_asks_the_cluster_of_what_the_configuration_asks_for(lab, tmp_path):
    async with asyncio.timeout(60):
        alone, asks = [await checked(lab, tmp_path, field) for field in ("", "peers: {}")]
    assert alone == ("ok", "the configuration asks for none")
    assert asks == ("failure", "Secret lastcall-system/lastcall-watchdog-peers is missing, or has no key")


async def checked(lab, root, field):
    """What the line on peers says, on a host where nothing else answers."""
    config = root / "agent.yaml"
    head = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\n"
    config.write_text(f"{head}watchdog: {{{field}}}\n")
    line = [sys.executable, "-m", "lastcall", "doctor", "-o", "json", "--config", config, "--logind-root", root]
    line += ["--state-dir", root / "state", "--container-runtime-endpoint", f"unix://{root}/none.sock"]
    process = await asyncio.create_subprocess_exec(
        *map(str, [*line, "--kubeconfig", lab.kubeconfig]),
        env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={root}/none"},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        out, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    [check] = [check for check in json.loads(out)["checks"] if check["name"] == "watchdog-peers"]
    return check["verdict"], check["message"]
