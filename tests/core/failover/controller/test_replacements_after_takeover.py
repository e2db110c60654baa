"""What takes the place of pods that a node has lost is followed by whoever leads, in virtual time."""

import contextlib
import json

from support.failover.virtual_cluster import NAMES, failing_over

from lastcall.adapters.kube.resources import DEPLOYMENTS, LEASES, PODS
from lastcall.cli.failover_explain import list_objects
from lastcall.failover.reporting.cluster_objects import case_from_objects
from lastcall.failover.reporting.explanation import explain_node
from lastcall_lab.controllers.objects.pods import condition_of


@contextlib.contextmanager
def unready(world):
    """No pod that is made meanwhile becomes Ready."""
    started = world.nodes._started

    async def never(pod):
        pass

    world.nodes._started = never
    try:
        yield
    finally:
        world.nodes._started = started


def followed(candidate, node):
    """As this controller knows it; None if it does not look after the node."""
    worker = next((one for one in candidate.controller.reconcilers if one.name == node), None)
    return dict(worker.gathered.case.replacements) if worker and worker.gathered else None


def says(candidate, node):
    return next((one.sentence for one in candidate.controller.reconcilers if one.name == node), "")


def webs(world):
    return {
        one["metadata"]["name"]: one["spec"].get("nodeName")
        for one in world.cluster.all(PODS)
        if one["metadata"]["labels"].get("app") == "web" and condition_of(one, "Ready").get("status") == "True"
    }


async def explained(world, node):
    found, now = await list_objects(world.cluster.client), world.cluster.clock.wall()
    return " ".join(one.why for one in explain_node(case_from_objects(found, node, now), now).hurdles)


def in_step(candidate, name):
    return candidate.counted["lastcall_failover_step_nodes", name]


async def led_and_pulled(world):
    """Who leads, who stands by, and the node of ``db-0``, whose power has just gone."""
    first = world.start("a")
    await world.cluster.settle(5)
    other = world.start("b")
    await world.cluster.settle(25)
    node = world.place()
    world.nodes.pull(node)
    return first, other, node


@failing_over
async def test_a_new_leader_goes_on_following(world):
    first, other, node = await led_and_pulled(world)
    with unready(world):
        await world.until(lambda: "not Ready yet elsewhere: default/db-0" in says(first, node), 60)
        before = followed(first, node)
        assert before["default/db-0"] is False
        first.process.kill()
        await world.until(lambda: followed(other, node), 60)
        assert followed(other, node) == before
        assert "not Ready yet elsewhere: default/db-0" in says(other, node)
        assert in_step(other, "Replacement") == 1
        assert "not Ready yet elsewhere: default/db-0" in await explained(world, node)
    await world.until(lambda: all(followed(other, node).values()), 60)
    assert world.mark(node)
    assert (in_step(other, "Replacement"), in_step(other, "Back")) == (0, 1)
    assert "not Ready yet" not in says(other, node)
    assert "not Ready yet" not in await explained(world, node)


@failing_over
async def test_a_leader_that_dies_with_the_taint_has_named_what_the_next_one_follows(world):
    first, other, node = await led_and_pulled(world)
    write, cluster = first.controller._cluster.update_node, first.controller._cluster

    async def last(live, *, taints=None, **more):
        found = await write(live, taints=taints, **more)
        if taints is not None:
            first.process.kill()
        return found

    cluster.update_node = last
    with unready(world):
        await world.until(lambda: world.out_of_service(node), 60)
        assert "db-0" in {one["name"] for one in json.loads(world.mark(node))["lost"]}
        await world.until(lambda: "not Ready yet elsewhere: default/db-0" in says(other, node), 90)
    assert not first.process.alive
    await world.until(lambda: all(followed(other, node).values()), 60)


@failing_over
async def test_who_leads_again_follows_again(world):
    """Another one has led meanwhile, who does nothing: the worker of before is gone."""
    only = world.start("a")
    await world.cluster.settle(25)
    node = world.place()
    world.nodes.pull(node)
    with unready(world):
        await world.until(lambda: "not Ready yet elsewhere" in says(only, node), 60)
        place = {"namespace": "lastcall-system"}
        stolen = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}}
        await world.cluster.patch(LEASES, "lastcall-controller", stolen, **place)
        await world.until(lambda: not only.controller.reconcilers, 60)
        await world.cluster.patch(LEASES, "lastcall-controller", {"spec": {"holderIdentity": ""}}, **place)
        await world.until(lambda: "not Ready yet elsewhere: default/db-0" in says(only, node), 90)
    await world.until(lambda: all(followed(only, node).values()), 60)


@failing_over
async def test_a_replica_that_ran_all_the_time_replaces_nobody(world):
    await world.cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": len(NAMES)}})
    await world.until(lambda: len(webs(world)) == len(NAMES))
    candidate = world.start()
    await world.cluster.settle(25)
    name, node = next(iter(webs(world).items()))
    world.nodes.pull(node)
    lost = {f"default/{one}" for one, place in webs(world).items() if place == node}
    assert f"default/{name}" in lost
    with unready(world):
        await world.until(lambda: "not Ready yet elsewhere" in says(candidate, node), 60)
        await world.cluster.settle(10)
        found = followed(candidate, node)
        assert {one for one, ready in found.items() if "web" in one and not ready} == lost
    await world.until(lambda: all(followed(candidate, node).values()), 60)


@failing_over
async def test_following_costs_no_write_and_keeps_no_node_marked(world):
    """The mark, that it is switched off, the taint; the taint's end and the mark's, with its pods not Ready elsewhere."""
    candidate = world.start()
    await world.cluster.settle(25)
    node, cluster = world.place(), candidate.controller._cluster
    write, written = cluster.update_node, []

    async def noted(live, *, mark=None, taints=None, **more):
        written.append((bool(mark), taints is not None))
        return await write(live, mark=mark, taints=taints, **more)

    cluster.update_node = noted
    world.nodes.pull(node)
    with unready(world):
        await world.until(lambda: "not Ready yet elsewhere" in says(candidate, node), 60)
        assert written == [(True, False), (True, False), (True, True)]
        await world.nodes.boot(node)
        await world.until(lambda: not world.mark(node), 120)
        assert written[3:] == [(True, True), (False, False)]
