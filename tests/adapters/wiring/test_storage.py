"""The agent tells of its node's lease on shared storage as it is wired: over TLS to an API server, by a kubeconfig."""

import asyncio
import json
import logging

import pytest
from support.kube.api_servers import TOKEN, lab
from support.lab import https_server

from lastcall import names
from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES, NAMESPACES
from lastcall.errors import InvalidInput
from lastcall.model.storage_lease import SanlockSettings, StorageLeaseSettings, parse_record
from lastcall.model.watchdog_lease import AgentLease
from lastcall.wiring.storage import storage_lease_reporter
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.sanlock import FakeLockspace

pytestmark = pytest.mark.timeout(120)

SETTINGS = StorageLeaseSettings(sanlock=SanlockSettings(lockspace="demo"))


@pytest.fixture
async def cluster(tmp_path):
    """Its administrator, and a kubeconfig for it."""
    server = lab()
    async with https_server.serving(server, tmp_path) as (url, authority):
        admin = Client(InProcessTransport(server), manager="kubectl")
        await admin.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
        (tmp_path / "ca.crt").write_text(authority)
        config = {
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        yield admin, str(tmp_path / "kubeconfig")


async def until_told(admin):
    async with asyncio.timeout(60):
        while True:
            found = await admin.list(LEASES.with_shape(AgentLease), namespace=names.NODES_NAMESPACE)
            records = [record for one in found.items if (record := parse_record(one.metadata.annotations))]
            if records:
                return records[0]
            await asyncio.sleep(0.05)


async def test_it_is_told_of(cluster):
    admin, kubeconfig = cluster
    storage = FakeLockspace("demo")
    host = storage.host(7, "seven")
    host.join()
    storage.advance(30)
    async with storage_lease_reporter(SETTINGS, "n1", kubeconfig, host):
        record = await until_told(admin)
    assert (record.boot_id, record.lockspace, record.host_id) == (boot_id(), "demo", 7)
    assert record.dead_after_seconds is None


async def test_without_sanlock_it_says_so(cluster, monkeypatch, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="lastcall.storage.lease_reporter")
    monkeypatch.setenv("PATH", str(tmp_path))
    admin, kubeconfig = cluster
    async with storage_lease_reporter(SETTINGS, "n1", kubeconfig):
        record = await until_told(admin)
    assert (record.lockspace, record.why) == ("", "sanlock cannot be started: No such file or directory")
    assert "it is unknown: sanlock cannot be started" in caplog.text


async def test_without_settings_what_was_told_is_taken_back_and_nothing_else(cluster):
    admin, kubeconfig = cluster
    lease = {"metadata": {"name": "n1", "annotations": {names.STORAGE_LEASE: "{}", names.WATCHDOG: "{}"}}}
    await admin.create(LEASES, lease, namespace=names.NODES_NAMESPACE)
    async with storage_lease_reporter(None, "n1", kubeconfig), asyncio.timeout(60):
        while True:
            found = await admin.get(LEASES.with_shape(AgentLease), "n1", namespace=names.NODES_NAMESPACE)
            if names.STORAGE_LEASE not in found.metadata.annotations:
                break
            await asyncio.sleep(0.05)
    assert found.metadata.annotations == {names.WATCHDOG: "{}"}


async def test_a_kubeconfig_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        async with storage_lease_reporter(SETTINGS, "n1", str(tmp_path / "nowhere")):
            pass
