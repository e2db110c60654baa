"""From where the doctor finds the priorities of the pods that the runtime lists."""

import asyncio

import pytest
from support.runtimes.scripted_cri import scripted_cri

from lastcall import names
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.doctor.priority_facts import gather_priorities
from lastcall.adapters.state.pod_checkpoint import NAME
from lastcall.doctor.facts import PriorityFacts, UnknownFact
from lastcall.ports.node import PrioritySource

KEPT = b'{"pods":[{"metadata":{"name":"kept","uid":"kept"},"spec":{"priority":7}}]}'
MANIFEST = (
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"static"},"spec":{"containers":[{"name":"c"}],"priority":9}}'
)


@pytest.fixture(autouse=True)
def _no_pod(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def answer(peer, *pods):
    """Running pods by name, with the annotations of their sandboxes."""
    running = [
        cri.Container(id=f"c-{name}", pod_sandbox_id=name, metadata=cri.ContainerMetadata(name="c")) for name, _ in pods
    ]
    boxes = [
        cri.PodSandbox(
            id=name,
            metadata=cri.PodSandboxMetadata(name=name, namespace="default", uid=name),
            annotations=annotations,
        )
        for name, annotations in pods
    ]
    peer.answers["ListContainers"] = lambda *_: cri.ListContainersResponse(containers=running)
    peer.answers["ListPodSandbox"] = lambda *_: cri.ListPodSandboxResponse(items=boxes)


def lay_out(directory):
    (directory / "manifests").mkdir()
    (directory / "manifests" / "static.json").write_text(MANIFEST)
    (directory / NAME).write_bytes(KEPT)
    (directory / NAME).chmod(0o600)


async def found(endpoint, directory):
    return await gather_priorities(
        endpoint, directory, static_pod_path=str(directory / "manifests"), kubeconfig="", root=directory
    )


async def test_every_source_is_looked_at_and_why_the_api_is_not_is_told(tmp_path):
    await asyncio.to_thread(lay_out, tmp_path)
    async with scripted_cri(tmp_path) as (peer, endpoint):
        answer(peer, ("kept", {}), ("static", {}), ("noted", {names.PRIORITY_ANNOTATION: "5"}), ("nobodys", {}))
        facts = await found(endpoint, tmp_path)
    assert isinstance(facts, PriorityFacts)
    assert facts.sources == {
        "default/kept": PrioritySource.CHECKPOINT,
        "default/static": PrioritySource.MANIFEST,
        "default/noted": PrioritySource.RUNTIME,
        "default/nobodys": PrioritySource.DEFAULT,
    }
    assert "kubelet.conf" in facts.api.reason


async def test_a_runtime_that_does_not_list_makes_it_unknown(tmp_path):
    async with scripted_cri(tmp_path) as (_, endpoint):
        assert isinstance(await found(endpoint, tmp_path), UnknownFact)
