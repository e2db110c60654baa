"""What is sent for the pods of a boot that is proved to be over: two calls each, after the taint, and for no other pod."""

import json

import pytest
from support.failover.virtual_cluster import failing_over
from support.lab.volume_kubelets import pod

from lastcall.adapters.kube.failover_cluster import COMPONENT
from lastcall.adapters.kube.resources import PODS
from lastcall.model.power import PowerState
from lastcall_lab.apiserver.server.in_process import InProcessTransport

ALONE = ("podgc", "taint-eviction-controller")
"""Whoever else would delete pods."""
TOLERATION = {"key": "node.kubernetes.io/out-of-service", "operator": "Exists", "effect": "NoExecute"}


@pytest.fixture
def written(monkeypatch):
    """The failover controller's PATCHes and DELETEs: method, path and body, in their order."""
    real, calls = InProcessTransport.request, []

    async def request(self, method, target, headers, body, *, stream=False):
        if method in ("PATCH", "DELETE") and headers["user-agent"].startswith(COMPONENT):
            calls.append((method, target.partition("?")[0], json.loads(body or b"{}")))
        return await real(self, method, target, headers, body, stream=stream)

    monkeypatch.setattr(InProcessTransport, "request", request)
    return calls


def about(written, name):
    """Those about one pod."""
    path = f"/api/v1/namespaces/default/pods/{name}"
    return [(method, body) for method, target, body in written if target in (path, f"{path}/status")]


def about_pods(written):
    return [number for number, (_, target, _) in enumerate(written) if "/pods/" in target]


async def make(world, name, node, *, phase="Running", finalizers=(), tolerations=()):
    """A pod that runs, or has run, on a node; its uid."""
    obj = pod(name, nodeName=node, tolerations=list(tolerations))
    obj["metadata"]["finalizers"] = list(finalizers)
    await world.cluster.create(PODS, obj)
    await world.cluster.settle(2)
    await world.cluster.patch(PODS, name, {"status": {"phase": phase}}, subresource="status")
    return uid_of(world, name)


def uid_of(world, name):
    return world.cluster.get(PODS, name)["metadata"]["uid"]


def failed(uid):
    """The patch, without the time and the generation of its condition."""
    reason, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return {"metadata": {"uid": uid}, "status": {"phase": "Failed", "conditions": [disrupted]}}


def timeless(call):
    method, body = call
    for condition in body.get("status", {}).get("conditions", ()):
        condition.pop("lastTransitionTime")
        condition.pop("observedGeneration", None)
    return method, body


def removed(uid):
    return {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}


def sent(call):
    method, body = timeless(call)
    return method, {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}


def test_each_pod_takes_a_patch_and_a_delete_of_itself_after_the_taint(written):
    @failing_over(without=ALONE)
    async def run(world):
        gone = world.place()
        running, finished = uid_of(world, "db-0"), await make(world, "done", gone, phase="Succeeded")
        kept = await make(world, "kept", gone, finalizers=["example.com/wait"])
        await make(world, "stays", gone, tolerations=[TOLERATION])
        world.start()
        world.nodes.pull(gone)
        await world.until(lambda: world.place() not in (None, gone), 120)
        await world.cluster.settle(120)
        assert [*map(sent, about(written, "db-0"))] == [("PATCH", failed(running)), ("DELETE", removed(running))]
        assert [*map(sent, about(written, "done"))] == [("DELETE", removed(finished))], "it keeps its phase"
        expected = [("PATCH", failed(kept)), ("DELETE", removed(kept))]
        assert [*map(sent, about(written, "kept"))] == expected, "its finalizers are others' to take away"
        assert about(written, "stays") == []
        taint = [number for number, (*_, body) in enumerate(written) if body.get("spec", {}).get("taints")]
        assert taint[0] < about_pods(written)[0]

    run()


def test_a_pod_that_tolerates_the_taint_for_a_time_has_that_time(written):
    @failing_over(without=ALONE)
    async def run(world):
        gone = world.place()
        await make(world, "patient", gone, tolerations=[{**TOLERATION, "tolerationSeconds": 60}])
        world.start()
        world.nodes.pull(gone)
        await world.until(lambda: world.out_of_service(gone), 120)
        await world.cluster.settle(50)
        assert about(written, "patient") == []
        await world.cluster.settle(60)
        assert [method for method, _ in about(written, "patient")] == ["PATCH", "DELETE"]

    run()


def test_nothing_is_sent_for_the_pods_of_a_boot_that_is_not_proved_to_be_over(written):
    """Its BMC accepts each order, and says that the machine is on."""

    @failing_over(without=ALONE)
    async def run(world):
        gone = world.place()
        world.fences[gone].lies = PowerState.ON
        world.start()
        world.nodes.silent.add(gone)
        await world.until(lambda: world.verbs("off"), 60)
        await world.cluster.settle(120)
        assert about_pods(written) == []

    run()
