"""One node that cannot be failed over does not hold back the others; one that is never keeps their limits."""

import json

import pytest
from support.failover.virtual_cluster import NAMES, failing_over
from support.lab.volume_kubelets import pod

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.failover.decisions.steps import Mark
from lastcall.failover.reporting.controller_events import StepDecided
from lastcall.model.power import PowerState

ZONE = "topology.kubernetes.io/zone"
WIDE = {"limits": {"minHealthy": 0, "perDomain": 1, "perHour": 9, "settle": "5s"}}


def spare(world):
    """A node that neither of the programs runs on."""
    return next(name for name in NAMES if name not in (world.place(), world.place("web")))


async def in_one_zone(world):
    for name in NAMES:
        await world.cluster.patch(NODES, name, {"metadata": {"labels": {ZONE: "east"}}}, namespace="")


@pytest.mark.parametrize("zones", [True, False])
def test_a_node_whose_device_is_deaf_holds_no_other_back(zones):
    """It is suspected first, and its BMC answers nothing: no order can be given."""

    @failing_over(policy=WIDE)
    async def run(world):
        if zones:
            await in_one_zone(world)
        deaf, gone = spare(world), world.place()
        await world.cluster.create(PODS, pod("extra", nodeName=deaf))
        world.fences[deaf].away = True
        world.start()
        world.nodes.pull(deaf)
        await world.until(lambda: world.fences[deaf].asked, 60)
        world.nodes.pull(gone)
        await world.until(lambda: world.place() not in (None, gone), 60)
        assert not world.mark(deaf)

    run()


@pytest.mark.parametrize("trouble", ["another machine", "by an older version"])
def test_a_mark_that_can_get_no_order_gives_its_place_back(trouble):
    """The Node is marked already, as by a controller that is gone, and its device stands for another machine."""

    @failing_over(policy=WIDE)
    async def run(world):
        await in_one_zone(world)
        stuck, gone = spare(world), world.place()
        await world.cluster.create(PODS, pod("extra", nodeName=stuck))
        world.fences[stuck].wrong = "4c4c4544-0051-3510-8052-b4c04f4a3332"
        world.fences[stuck].away = trouble == "by an older version"
        mark = {"bootID": f"boot-{stuck}-1", "policy": "p", "began": "2026-11-21T12:00:00Z", "by": "former"}
        said = {"metadata": {"annotations": {"lastcall.dev/failover": json.dumps(mark)}}}
        await world.cluster.patch(NODES, stuck, said, namespace="")
        world.nodes.pull(stuck)
        world.start()
        await world.cluster.settle(5)
        world.nodes.pull(gone)
        await world.until(lambda: world.place() not in (None, gone), 120)
        assert not world.mark(stuck)
        assert world.verbs("off")[0].node == gone

    run()


@pytest.mark.parametrize("successor", [False, True])
def test_a_node_that_is_dead_for_good_and_failed_over_takes_no_place_in_its_domain(successor):
    """A controller that leads later knows it, too."""

    @failing_over(policy=WIDE)
    async def run(world):
        await in_one_zone(world)
        candidate = world.start()
        await world.cluster.settle(5)
        first = world.place()
        world.nodes.pull(first)
        await world.until(lambda: world.place() not in (None, first), 60)
        await world.cluster.settle(30)
        if successor:
            candidate.process.kill()
            world.start("other")
            await world.cluster.settle(60)
        second = world.place()
        world.nodes.pull(second)
        await world.until(lambda: world.place() not in (None, first, second), 60)
        assert world.mark(first)

    run()


@failing_over(policy={"limits": {**WIDE["limits"], "perHour": 1}})
async def test_of_two_nodes_whose_devices_answer_at_the_same_moment_one_takes_the_place(world):
    """Both were allowed when they were looked at; the limits are asked once more as the place is taken."""
    two = world.place(), spare(world)
    await world.cluster.create(PODS, pod("extra", nodeName=two[1]))
    candidate = world.start()
    await world.cluster.settle(30)
    gathering = candidate.controller._gathering
    gather, waiting = gathering.build, []

    async def together(name, *rest, **more):
        """Who would be marked now waits for the other to be as far."""
        found = await gather(name, *rest, **more)
        ready = found.case.devices and found.case.devices[0].judgement and found.case.limit_answer.allowed
        if name in two and ready and not found.case.node.mark_text and name not in waiting:
            waiting.append(name)
            while len(waiting) < 2:
                await world.cluster.clock.sleep(0.01)
        return found

    gathering.build = together
    world.nodes.silent.update(two)
    await world.cluster.settle(60)
    assert sorted(waiting) == sorted(two)
    begun = {one.node for one in world.happened if isinstance(one, StepDecided) and isinstance(one.step, Mark)}
    assert begun == {one.node for one in world.verbs("off")}
    assert len(begun) == 1


@failing_over(policy=WIDE)
async def test_a_persons_word_outlives_a_mark_that_is_given_back(world):
    stuck = world.place()
    world.fences[stuck].wrong = "4c4c4544-0051-3510-8052-b4c04f4a3332"
    mark = {"bootID": f"boot-{stuck}-1", "policy": "p", "began": "2026-11-21T12:00:00Z", "by": "former"}
    word = {"lastcall.dev/failover": json.dumps(mark), "lastcall.dev/acknowledged-dead": f"boot-{stuck}-1 never"}
    await world.cluster.patch(NODES, stuck, {"metadata": {"annotations": word}}, namespace="")
    world.nodes.silent.add(stuck)
    world.start()
    await world.until(lambda: not world.mark(stuck), 120)
    assert world.node(stuck)["metadata"]["annotations"]["lastcall.dev/acknowledged-dead"]


@failing_over(policy=WIDE)
async def test_a_node_that_got_an_order_keeps_its_place_until_it_is_proved_to_be_dead(world):
    await in_one_zone(world)
    first, second = world.place(), spare(world)
    await world.cluster.create(PODS, pod("extra", nodeName=second))
    world.fences[first].lies = PowerState.ON
    world.start()
    world.nodes.silent.add(first)
    await world.until(lambda: world.verbs("off"), 60)
    world.nodes.silent.add(second)
    await world.cluster.settle(120)
    assert {one.node for one in world.verbs("off")} == {first}
    await world.cluster.patch(POLICIES, "p", {"spec": {"limits": {"perDomain": 2}}}, namespace="")
    await world.until(lambda: second in {one.node for one in world.verbs("off")}, 60)


@failing_over(policy=WIDE)
async def test_without_zones_a_node_that_got_an_order_holds_no_other_back(world):
    """Its device accepts each order, and the machine stays on: it can never be proved to be dead."""
    first, second = world.place(), spare(world)
    await world.cluster.create(PODS, pod("extra", nodeName=second))
    world.fences[first].lies = PowerState.ON
    world.start()
    world.nodes.silent.add(first)
    await world.until(lambda: world.verbs("off"), 60)
    world.nodes.silent.add(second)
    await world.until(lambda: world.out_of_service(second), 120)
    assert world.mark(first)
