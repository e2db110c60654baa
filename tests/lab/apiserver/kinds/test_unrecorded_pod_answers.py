"""What the lab answers where no recording tells: pods, their subresources, and metadata. Each row names its source."""

import json

import pytest
from support.lab.pod_requests import MERGE, PODS, kubelet, pod, with_api
from support.lab.replayed_server import LabApi

from lastcall_lab import virtual

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}
CONTAINER = {"name": "c", "image": "i"}
ZONES = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}


def row(source, body, code, said, *, target=PODS, method="POST"):
    """``source`` is where upstream decides it; ``said`` is a part of the answer."""
    return pytest.param(method, target, body, code, said, id=f"{source}: {said}"[:90].replace("::", ":"))


REFUSED = [
    row(
        "etcd3.store.Create",
        pod(metadata={"resourceVersion": "5"}),
        500,
        "resourceVersion should not be set on objects",
    ),
    row(
        "validateKubeFinalizerName",
        pod(metadata={"finalizers": ["hold"]}),
        422,
        "metadata.finalizers[0]: Invalid value",
    ),
    row("validateOS", pod(os={"name": "beos"}), 422, 'spec.os: Unsupported value: "beos"'),
    row("plugin RuntimeClass", pod(runtimeClassName="x"), 403, 'pod rejected: RuntimeClass "x" not found'),
    row("plugin RuntimeClass", pod(overhead={"cpu": "1"}), 403, "Overhead set without corresponding RuntimeClass"),
    row(
        "ValidatePodLogOptions",
        None,
        422,
        "tailLines: Invalid value: -1",
        target=f"{PODS}/on/log?tailLines=-1",
        method="GET",
    ),
    row("ValidatePodLogOptions", None, 422, "limitBytes: Invalid", target=f"{PODS}/on/log?limitBytes=0", method="GET"),
    row(
        "ValidatePodLogOptions",
        None,
        422,
        "sinceSeconds: Invalid",
        target=f"{PODS}/on/log?sinceSeconds=0",
        method="GET",
    ),
    row(
        "ValidatePodLogOptions", None, 422, "stream: Unsupported value", target=f"{PODS}/on/log?stream=X", method="GET"
    ),
    row("strconv", None, 400, 'strconv.ParseInt: parsing "x"', target=f"{PODS}/on/log?tailLines=x", method="GET"),
    row("pod.validateContainer", None, 400, "container x is not valid", target=f"{PODS}/on/exec?container=x"),
    row(
        "BindingREST.Create", {"target": {"kind": "Node", "name": "n"}}, 400, "name in URL", target=f"{PODS}/on/binding"
    ),
    row(
        "DeleteOptions",
        {"gracePeriodSeconds": 1.5},
        400,
        "cannot unmarshal number 1.5",
        target=f"{PODS}/on",
        method="DELETE",
    ),
]


@pytest.mark.parametrize(("method", "target", "body", "code", "said"), REFUSED)
def test_refused(method, target, body, code, said):
    @with_api
    async def scenario(api):
        await api.good("POST", PODS, pod("on", nodeName="n1"))
        found, answer = await api.ask(method, target, body)
        assert found == code
        assert said in answer["message"]

    scenario()


@with_api
async def test_owners_that_are_there_twice_are_told_and_dropped(api):
    """``handlers.dedupOwnerReferencesAndAddWarning``."""
    made = await api.good("POST", PODS, pod(metadata={"ownerReferences": [OWNER, OWNER]}))
    assert made["metadata"]["ownerReferences"] == [OWNER]
    assert "contains duplicate entries; API server dedups" in api.warnings[0]
    merge = {"metadata": {"ownerReferences": [OWNER, OWNER]}}
    await api.good("PATCH", f"{PODS}/p", merge, media=MERGE)
    assert "contains duplicate entries after mutating admission happens" in api.warnings[0]


@with_api
async def test_a_merge_patch_cannot_make_another_kind(api):
    """``jsonPatcher.applyPatchToCurrentObject`` decodes what comes out; the strategic patcher looks at no kind."""
    await api.good("POST", PODS, pod())
    for patch, why in (
        ({"kind": "Node"}, "converting (v1.Node) to (core.Pod): unknown conversion"),
        ({"apiVersion": "apps/v1"}, 'no kind "Pod" is registered for version "apps/v1"'),
    ):
        code, reason, message = await api.refused("PATCH", f"{PODS}/p", patch, media=MERGE)
        assert (code, reason) == (422, "Invalid")
        assert why in message
    await api.good("PATCH", f"{PODS}/p", {"kind": "Node"}, media="application/strategic-merge-patch+json")


@with_api
async def test_a_dry_run_may_say_a_revision(api):
    """``DryRunnableStorage.Create`` does not ask the storage."""
    await api.good("POST", f"{PODS}?dryRun=All", pod(metadata={"resourceVersion": "5"}))


@with_api
async def test_stop_signals_are_dropped(api):
    """``dropContainerStopSignals``: the feature ContainerStopSignals is alpha in 1.36."""
    made = await api.good("POST", PODS, pod(containers=[{**CONTAINER, "lifecycle": {"stopSignal": "SIGUSR1"}}]))
    assert "lifecycle" not in made["spec"]["containers"][0]


@with_api
async def test_zone_and_region_come_to_the_pod(api):
    """Plugin PodTopologyLabels, and ``BindingREST.setPodNodeAndMetadata``, which overwrites labels."""
    await api.good("POST", "/api/v1/nodes", {"metadata": {"name": "n1", "labels": {**ZONES, "other": "x"}}})
    direct = await api.good("POST", PODS, pod("direct", nodeName="n1"))
    assert direct["metadata"]["labels"] == ZONES
    await api.good("POST", PODS, pod("bound", metadata={"labels": {"a": "b", "topology.kubernetes.io/zone": "old"}}))
    binding = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n1"}}
    await api.good("POST", f"{PODS}/bound/binding", binding)
    assert (await api.good("GET", f"{PODS}/bound"))["metadata"]["labels"] == {"a": "b", **ZONES}


@with_api
async def test_a_kubelet_cannot_give_its_node_an_owner(api):
    """``noderestriction.admitNode``."""
    await api.good("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    merge = {"metadata": {"ownerReferences": [OWNER]}}
    code, _, why = await api.refused("PATCH", "/api/v1/nodes/n1", merge, user=kubelet("n1"), media=MERGE)
    assert (code, why.rpartition(": ")[2]) == (403, 'node "n1" is not allowed to modify ownerReferences')


def test_a_delete_with_null_as_its_body_has_no_options():
    """``json.Unmarshal`` of null changes nothing."""

    async def run():
        api = LabApi(virtual.VirtualClock())
        kind = {"content-type": "application/json"}
        made = {"metadata": {"name": "m"}}
        await api.ask("POST", "/api/v1/namespaces/default/configmaps", kind, json.dumps(made).encode(), None)
        code, _, _ = await api.ask("DELETE", "/api/v1/namespaces/default/configmaps/m", kind, b"null", None)
        assert code == 200

    virtual.run(run())
