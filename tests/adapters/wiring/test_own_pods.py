"""The agent's sources of pod specs: where they come from, and what is told if there are none."""

import asyncio
import logging

import pytest
import yaml
from support.lab.up_client import client_of, served
from support.lab.up_process import LabProcess

from lastcall.adapters.kube.node_access import KUBELET_CONF
from lastcall.adapters.kube.resources import NODES, PODS, dict_resource
from lastcall.adapters.state.pod_checkpoint import NAME
from lastcall.wiring import own_pods
from lastcall.wiring.own_pods import own_pod_sources

KEPT = b'{"pods":[{"metadata":{"name":"kept","uid":"k"},"spec":{"priority":7}}]}'


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(own_pods, "SEARCH_SECONDS", 0.02)


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path / "lab")
    process.start()
    yield process
    process.end()


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def keep(state_dir):
    state_dir.mkdir(mode=0o700)
    path = state_dir / NAME
    path.write_bytes(KEPT)
    path.chmod(0o600)


async def test_without_an_identity_the_other_sources_remain_and_that_is_told_once(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    await asyncio.to_thread(keep, tmp_path / "state")
    await asyncio.to_thread((tmp_path / "manifests").mkdir)
    text = (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"etcd"},"spec":{"containers":[{"name":"c"}],"priority":9}}'
    )
    await asyncio.to_thread((tmp_path / "manifests" / "etcd.json").write_text, text)
    async with own_pod_sources(
        "n1", tmp_path / "state", static_pod_path=str(tmp_path / "manifests"), root=tmp_path
    ) as sources:
        await asyncio.sleep(0.3)
        known = await asyncio.to_thread(sources.current_sources)
        assert (sources.client, sources.watch) == (None, None)
    assert {uid: pod.spec.priority for uid, pod in known.checkpoint.items()} == {"k": 7}
    assert [pod.spec.priority for pod in known.manifests.values()] == [9]
    assert known.watched == {}
    [record] = caplog.records
    assert KUBELET_CONF in record.getMessage()
    assert (tmp_path / "state" / NAME).read_bytes() == KEPT  # noqa: ASYNC240 - a small file in a test


async def test_a_kubelet_that_starts_later_is_found(lab, tmp_path, caplog):
    changes = []
    root = tmp_path / "root"
    await asyncio.to_thread(keep, tmp_path / "state")
    async with own_pod_sources("n1", tmp_path / "state", root=root) as sources:
        sources.on_change = lambda: changes.append(len(sources.current_sources().watched))
        await asyncio.sleep(0.1)
        with client_of(lab) as client:
            await served(lambda: client.get(dict_resource("", "v1", "serviceaccounts"), "default", namespace="default"))
            await client.create(NODES, {"metadata": {"name": "n1"}})
            spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
            made = await client.create(PODS, {"metadata": {"name": "web"}, "spec": spec}, namespace="default")
        await asyncio.to_thread(_write_kubelet_conf, lab, root)
        await until(lambda: changes)
        await until(lambda: sources.watch.in_sync)
        assert list(sources.current_sources().watched) == [made["metadata"]["uid"]]
        assert list(sources.current_sources().checkpoint) == ["k"]
        assert sources.client is not None


def _write_kubelet_conf(lab, root):
    config = yaml.safe_load(lab.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] |= {"as": "system:node:n1", "as-groups": ["system:nodes", "system:authenticated"]}
    path = root / KUBELET_CONF.lstrip("/")
    path.parent.mkdir(parents=True)
    written = path.with_suffix(".new")
    written.write_text(yaml.safe_dump(config))
    written.rename(path)


async def test_a_bug_in_the_watch_does_not_end_the_agent(tmp_path, monkeypatch, caplog):
    calls = []

    def broken(*_, **__):
        calls.append(1)
        raise RuntimeError("a bug")

    monkeypatch.setattr(own_pods, "find_node_access", broken)
    async with own_pod_sources("n1", tmp_path / "state", root=tmp_path):
        await until(lambda: len(calls) > 2)
    assert "begins again" in caplog.text
