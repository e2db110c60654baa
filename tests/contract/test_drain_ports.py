"""What the ports of a drain promise, at an API server: ownership by Leases, requests by uid, and the watch."""

import asyncio
import contextlib
from random import Random

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.drain_cluster import KubeDrainCluster
from lastcall.adapters.kube.drain_watch import KubeDrainWatch
from lastcall.adapters.kube.node_ownership import KubeNodeOwnership
from lastcall.adapters.kube.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS, dict_resource
from lastcall.aio import cancel_and_wait
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall.model.node_ownership import OwnershipClaim
from lastcall.names import DRAINS_NAMESPACE
from lastcall.ports.drain import DrainEvent, NodeOwner, OwnershipTaken


async def make_node(cluster):
    """A Node of the test's own."""
    name = f"drain-{Random().getrandbits(48):x}"
    return await cluster.client.create(NODES, {"metadata": {"name": name}})


async def make_pod(cluster, node, name="p"):
    accounts = dict_resource("", "v1", "serviceaccounts")
    with contextlib.suppress(AlreadyExists):
        await cluster.client.create(accounts, {"metadata": {"name": "default"}}, namespace=cluster.namespace)
    pod = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}
    return await cluster.client.create(PODS, pod, namespace=cluster.namespace)


@pytest.fixture
async def node(cluster):
    made = await make_node(cluster)
    with contextlib.suppress(AlreadyExists):
        await cluster.client.create(NAMESPACES, {"metadata": {"name": DRAINS_NAMESPACE}})
    yield made
    await cluster.client.delete(NODES, made["metadata"]["name"])


def claim(cluster, node, holder="one"):
    uids = {node["metadata"]["name"]: node["metadata"]["uid"]}
    return KubeNodeOwnership(cluster.client, OwnershipClaim(holder, f"of {holder}"), uids, SystemClock())


async def test_one_owner_at_a_time(cluster, node):
    name = node["metadata"]["name"]
    one, other = claim(cluster, node), claim(cluster, node, "other")
    assert isinstance(await one.take([name]), OwnershipTaken)
    assert one.is_sure
    lease = await cluster.client.get(LEASES, f"node-{name}", namespace=DRAINS_NAMESPACE)
    assert lease["spec"]["holderIdentity"] == "one"
    assert lease["metadata"]["ownerReferences"][0]["name"] == name
    taking = asyncio.create_task(other.take([name]))
    await asyncio.sleep(0.2)
    assert not taking.done(), "it may be dead"
    await cluster.client.patch(LEASES, f"node-{name}", {"spec": {"leaseTransitions": 1}}, namespace=DRAINS_NAMESPACE)
    owner = await asyncio.wait_for(taking, 60)
    assert isinstance(owner, NodeOwner)
    assert (owner.node, owner.holder, owner.reason) == (name, "one", "of one")
    await one.release()
    assert isinstance(await other.take([name]), OwnershipTaken)
    await other.release()
    with pytest.raises(NotFound):
        await cluster.client.get(LEASES, f"node-{name}", namespace=DRAINS_NAMESPACE)


async def test_one_node_of_several_is_released(cluster, node):
    second = await make_node(cluster)
    names = sorted(one["metadata"]["name"] for one in (node, second))
    uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in (node, second)}
    one = KubeNodeOwnership(cluster.client, OwnershipClaim("one", ""), uids, SystemClock())
    assert isinstance(await one.take(names), OwnershipTaken)
    await one.release([names[0]])
    assert isinstance(
        await claim(cluster, node if node["metadata"]["name"] == names[0] else second, "other").take([names[0]]),
        OwnershipTaken,
    )
    lease = await cluster.client.get(LEASES, f"node-{names[1]}", namespace=DRAINS_NAMESPACE)
    assert lease["spec"]["holderIdentity"] == "one"
    await one.release()
    await cluster.client.delete(NODES, second["metadata"]["name"])


async def test_a_cancelled_take_holds_nothing(cluster, node):
    name = node["metadata"]["name"]
    one, other = claim(cluster, node), claim(cluster, node, "other")
    await one.take([name])
    taking = asyncio.create_task(other.take([name]))
    await asyncio.sleep(0.1)
    await cancel_and_wait(taking)
    lease = await cluster.client.get(LEASES, f"node-{name}", namespace=DRAINS_NAMESPACE)
    assert lease["spec"]["holderIdentity"] == "one"
    await one.release()


async def test_requests_are_for_exactly_one_pod(cluster, node):
    name = node["metadata"]["name"]
    pod = await make_pod(cluster, name)
    drain = KubeDrainCluster(cluster.client, SystemClock(), "test")
    for ask in (drain.evict_pod, drain.delete_pod):
        with pytest.raises(Conflict, match="UID in (the )?precondition"):
            await ask(cluster.namespace, "p", uid="another", grace=None)
        with pytest.raises(NotFound):
            await ask(cluster.namespace, "nosuch", uid=pod["metadata"]["uid"], grace=None)
    await drain.evict_pod(cluster.namespace, "p", uid=pod["metadata"]["uid"], grace=None)
    with contextlib.suppress(NotFound):
        await cluster.client.delete(PODS, "p", namespace=cluster.namespace, grace=0)


async def test_a_node_is_patched_if_it_is_as_it_was_read(cluster, node):
    name = node["metadata"]["name"]
    drain = KubeDrainCluster(cluster.client, SystemClock(), "test")
    found = await drain.read_node(name)
    metadata = {"resourceVersion": found.metadata.resource_version}
    changed = await drain.patch_node(name, {"metadata": metadata, "spec": {"unschedulable": True}})
    assert changed.spec.unschedulable
    with pytest.raises(Conflict):
        await drain.patch_node(name, {"metadata": metadata, "spec": {"unschedulable": None}})
    said = {"type": "Drained", "status": "True", "reason": "R", "message": "m"}
    await drain.patch_node_status(name, {"status": {"conditions": [said]}})
    await drain.write_event(DrainEvent(name=name, uid=name, reason="R", message="m"))
    await drain.write_event(
        DrainEvent(name="nosuch/..", uid="", reason="R", message="m", namespace="no-such-namespace")
    )
    kinds = [one.type for one in (await drain.read_node(name)).status.conditions or ()]
    assert "Drained" in kinds
    events = await cluster.client.list(EVENTS, namespace="default", fields=f"involvedObject.name={name}")
    assert "R" in [one["reason"] for one in events.items]


async def test_the_watch_has_the_pods_of_the_node_alone(cluster, node):
    other = await make_node(cluster)
    name = node["metadata"]["name"]
    await make_pod(cluster, name, "mine")
    await make_pod(cluster, other["metadata"]["name"], "theirs")
    watch = KubeDrainWatch(cluster.client, [name], SystemClock(), Random(1))
    assert not watch.is_complete
    running = asyncio.create_task(watch.run())
    try:
        seen = 0
        while not watch.is_complete:
            seen = await asyncio.wait_for(watch.wait_for_change(seen), 60)
        assert [pod.metadata.name for pod in watch.pods] == ["mine"]
        assert [*watch.nodes] == [name]
        await cluster.client.delete(PODS, "mine", namespace=cluster.namespace, grace=0)
        while [*watch.pods]:
            seen = await asyncio.wait_for(watch.wait_for_change(seen), 60)
    finally:
        await cancel_and_wait(running)
        await cluster.client.delete(PODS, "theirs", namespace=cluster.namespace, grace=0)
        await cluster.client.delete(NODES, other["metadata"]["name"])
