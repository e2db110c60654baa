"""The failover controller in virtual time when something else goes wrong too: it dies, is cut off, sees too little, or is not alone."""

import asyncio

import pytest
from support.failover.virtual_cluster import ELECTION, failing_over, uuid
from support.lab.volume_kubelets import pod

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.failover.decisions import steps
from lastcall.failover.reporting.controller_events import CallReported, StepDecided
from lastcall.model.power import PowerState
from lastcall_lab.simulation.network_faults import NetworkFault
from lastcall_lab.volumes.volume_events import find_violations


def nobody_wrote_twice(world):
    return find_violations(world.nodes.storage.records) == []


async def failed_over(world, node, seconds=180):
    """The pod runs elsewhere, and nobody was harmed."""
    await world.until(lambda: world.place() not in (None, node), seconds)
    assert nobody_wrote_twice(world)


async def in_order(world, node, seconds=240):
    """The machine boots, and nothing of ours is left."""
    await world.nodes.boot(node)
    await world.until(lambda: not world.mark(node) and not world.out_of_service(node), seconds)


def died_after(number):
    """A test: the controller dies after so many more of its steps, counted from when the node is lost; another goes on."""

    @failing_over
    async def scenario(world):
        first = world.start("a")
        node = world.place()
        world.nodes.silent.add(node)
        await world.cluster.settle(14.9)
        first.process.fuse = number
        await world.until(lambda: not first.process.alive or world.place() not in (None, node), 180)
        world.start("b")
        await failed_over(world, node)
        assert node in world.nodes.off
        await in_order(world, node)
        assert nobody_wrote_twice(world)

    return scenario


@pytest.mark.parametrize("number", [*range(1, 120, 6), *range(120, 600, 24)])
def test_it_dies_between_any_two_awaits_and_another_goes_on(number):
    died_after(number)()


@failing_over
async def test_nobody_is_fenced_while_the_api_server_is_away_and_for_a_while_after(world):
    candidate = world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.cluster.settle(5)
    world.weather.down = True
    await world.cluster.settle(60)
    world.weather.down = False
    assert world.verbs() == []
    await world.until(lambda: world.verbs("off"), 120)
    assert world.verbs("off")[0].began >= candidate.controller._cluster.api_failed_at + 5, "the policy's settle"
    await failed_over(world, node)
    others = [name for name in world.nodes.off if name != node]
    assert others == []


@failing_over
async def test_an_api_server_that_goes_away_in_the_middle_stops_nothing_for_ever(world):
    world.start()
    node = world.place()
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    world.weather.down = True
    await world.cluster.settle(30)
    world.weather.down = False
    await failed_over(world, node)


@failing_over
async def test_who_hears_nothing_of_anybody_fences_nobody(world):
    """The watches are silent, and nobody says so: all leases look old."""
    candidate = world.start()
    await world.cluster.settle(30)
    silent = NetworkFault(programs=("c",), silent=True)
    world.weather.begin(silent)
    await world.cluster.settle(120)
    assert world.verbs() == []
    assert world.nodes.off == set()
    world.weather.end(silent)
    assert candidate.task.done() is False


@failing_over
async def test_what_a_watch_withholds_a_live_read_shows(world):
    """One node's Lease is not heard of any more; it is read before anything is decided."""
    candidate = world.start()
    await world.cluster.settle(30)
    node, observing = world.place(), candidate.controller.observing
    hear = observing._handle_lease
    observing._handle_lease = lambda name, lease, now: None if name == node else hear(name, lease, now)
    await world.cluster.settle(120)
    assert world.verbs() == []
    assert not world.mark(node)
    decided = [type(one.step) for one in candidate.happened if isinstance(one, StepDecided) and one.node == node]
    assert decided, "it was looked at closely"
    assert steps.Mark not in decided


@failing_over
async def test_who_loses_the_lease_in_the_middle_does_nothing_more(world):
    first = world.start("a")
    node = world.place()
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    before = len([one for one in first.happened if isinstance(one, CallReported)])
    stolen = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}}
    await world.cluster.patch(LEASES, ELECTION.name, stolen, namespace=ELECTION.namespace)
    await world.cluster.settle(60)
    assert len([one for one in first.happened if isinstance(one, CallReported)]) == before
    assert not world.out_of_service(node)
    assert [one for one in asyncio.all_tasks() if one.get_name().startswith("failover of")] == []
    await world.cluster.patch(LEASES, ELECTION.name, {"spec": {"holderIdentity": ""}}, namespace=ELECTION.namespace)
    await failed_over(world, node)


@failing_over
async def test_of_two_controllers_one_acts_and_the_other_goes_on_when_it_dies(world):
    first, second = world.start("a"), world.start("b")
    await world.cluster.settle(20)
    leader, other = (first, second) if first.election.leads else (second, first)
    node = world.place()
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    assert other.happened == []
    leader.process.kill()
    await failed_over(world, node)
    assert other.happened
    await in_order(world, node)


@failing_over
async def test_a_leader_that_is_cut_off_has_stopped_when_the_other_begins(world):
    first = world.start("a")
    await world.cluster.settle(5)
    world.start("b")
    node = world.place()
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    cut = NetworkFault(programs=("a",), refused=1.0)
    world.weather.begin(cut)
    await failed_over(world, node)
    told = [
        (one.began, candidate)
        for candidate in world.candidates
        for one in candidate.happened
        if isinstance(one, CallReported)
    ]
    last_of_first = max(began for began, candidate in told if candidate is first)
    first_of_second = min(began for began, candidate in told if candidate is not first)
    assert last_of_first < first_of_second
    world.weather.end(cut)


@failing_over
async def test_bad_weather_delays_and_harms_nobody(world):
    world.start()
    node = world.place()
    world.weather.begin(NetworkFault(refused=0.2, slow=0.3, late=0.5, doubled=0.2, torn=0.05))
    world.nodes.silent.add(node)
    await world.cluster.settle(120)
    assert nobody_wrote_twice(world)
    world.weather._conditions.clear()
    await failed_over(world, node)
    await in_order(world, node)


@failing_over
async def test_a_taint_of_others_is_never_lost(world):
    world.start()
    node = world.place()
    theirs = {"key": "example.com/mine", "value": "v", "effect": "NoSchedule"}
    await world.cluster.patch(NODES, node, {"spec": {"taints": [theirs]}}, namespace="")
    world.nodes.pull(node)
    await failed_over(world, node)
    assert any(one["key"] == "example.com/mine" for one in world.node(node)["spec"]["taints"])
    await in_order(world, node)
    assert any(one["key"] == "example.com/mine" for one in world.node(node)["spec"]["taints"])


@failing_over
async def test_a_mark_of_the_future_is_left_alone(world):
    world.start()
    node = world.place()
    said = {"metadata": {"annotations": {"lastcall.dev/failover": '{"version": 7}'}}}
    await world.cluster.patch(NODES, node, said, namespace="")
    world.nodes.pull(node)
    await world.cluster.settle(90)
    assert world.verbs() == []


BY_ANNOTATION = {
    "name": "bmc",
    "redfish": {
        "address": {"annotation": "example.com/bmc"},
        "systemID": {"value": "1"},
        "credentials": {"secretName": "s"},
    },
}


@failing_over(policy={"fencers": [BY_ANNOTATION]})
async def test_an_off_of_another_machine_proves_nothing_when_the_fencer_is_led_to_it_in_the_middle(world):
    """It was told to switch off, and its answers were about the node's machine, until somebody edited the annotation."""
    node = world.place()
    other = next(name for name in world.fences.bmcs if name != node)

    async def of(wanted, policy):
        return [world.fences[wanted.annotations.get("example.com/bmc", wanted.name)] for _ in policy.spec.fencers]

    world.fences.make_fences = of
    world.fences[node].lies = PowerState.ON
    world.fences[other].lies = PowerState.OFF
    world.start()
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    led = {"metadata": {"annotations": {"example.com/bmc": other}}}
    await world.cluster.patch(NODES, node, led, namespace="")
    await world.cluster.settle(120)
    assert not world.out_of_service(node)
    assert {*world.verbs()} == {"off"}
    assert [what for what, _ in world.fences[other].asked if what == "off"] == []
    assert nobody_wrote_twice(world)


@failing_over(policy={"fencers": [BY_ANNOTATION]})
async def test_what_another_fencer_of_the_same_name_has_said_is_forgotten(world):
    """The first one's machine is off, and the node's is not; then the annotation is put right."""
    node = world.place()
    other = next(name for name in world.fences.bmcs if name != node)

    async def of(wanted, policy):
        return [world.fences[wanted.annotations.get("example.com/bmc", wanted.name)] for _ in policy.spec.fencers]

    world.fences.make_fences = of
    world.fences[other].wrong = uuid(node)
    world.fences[other].lies = PowerState.OFF
    world.fences[node].away = True
    led = {"metadata": {"annotations": {"example.com/bmc": other}}}
    await world.cluster.patch(NODES, node, led, namespace="")
    world.start()
    world.nodes.silent.add(node)
    await world.until(lambda: len([what for what, _ in world.fences[other].asked if what == "status"]) == 2, 60)
    await world.cluster.patch(NODES, node, {"metadata": {"annotations": {"example.com/bmc": node}}}, namespace="")
    await world.cluster.settle(120)
    assert not world.out_of_service(node)
    assert {*world.verbs()} == {"off"}


@failing_over(policy={"suspectAfter": "5s"})
async def test_a_node_whose_next_renewal_is_not_due_yet_is_not_silent(world):
    """Kubelets renew their Leases every 10 s: a policy that is less patient fences nobody for that."""
    node = world.place()
    one = {"spec": {"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": node}}}}
    await world.cluster.patch(POLICIES, "p", one, namespace="")
    world.start()
    await world.cluster.settle(120)
    assert world.verbs() == []
    assert not world.mark(node)
    world.nodes.pull(node)
    await failed_over(world, node)


@failing_over
async def test_a_machine_that_was_renamed_is_not_switched_off_for_its_old_name(world):
    """The Node of the old name is silent; another Node, which lives, shows the same system UUID."""
    node = world.place()
    other = next(name for name in world.fences.bmcs if name != node)
    await world.nodes._patch(other, {"nodeInfo": {"bootID": "b", "systemUUID": uuid(node).upper()}})
    candidate = world.start()
    world.nodes.silent.add(node)
    await world.cluster.settle(120)
    assert world.verbs() == []
    assert [what for what, _ in world.fences[node].asked if what == "off"] == []
    (worker,) = candidate.controller.reconcilers
    assert f"node {other}, which is heard of, shows the same system UUID" in worker.sentence


@failing_over
async def test_a_word_that_was_wrong_does_not_wait_for_the_next_controller(world):
    """Somebody has said that the machine is dead, and it spoke again: who observes later knows nothing of that."""
    world.start()
    node = world.place()
    world.fences[node].away = True
    world.nodes.silent.add(node)
    await world.until(lambda: world.fences[node].asked, 60)
    said = {"metadata": {"annotations": {"lastcall.dev/acknowledged-dead": f"boot-{node}-1", "mine": "stays"}}}
    await world.cluster.patch(NODES, node, said, namespace="")
    await world.until(lambda: world.out_of_service(node), 60)
    await world.nodes.back(node)
    await world.until(lambda: not world.mark(node), 120)
    assert world.node(node)["metadata"]["annotations"] == {"mine": "stays"}


def renewed(world, node):
    """``renewTime`` of its Lease."""
    return world.cluster.get(LEASES, node)["spec"]["renewTime"]


async def says(world, node, word):
    """A person writes it by hand."""
    said = {"metadata": {"annotations": {"lastcall.dev/acknowledged-dead": word}}}
    await world.cluster.patch(NODES, node, said, namespace="")


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_word_that_was_refuted_before_anything_was_done_never_counts_for_a_later_silence(by_hand):
    """It is written while the node is well; a controller that is started later finds it there, and the node cut off."""

    @failing_over
    async def scenario(world):
        first = world.start("a")
        node = world.place()
        word = f"boot-{node}-1" if by_hand else f"boot-{node}-1 {renewed(world, node)}"
        await says(world, node, word)
        await world.cluster.settle(30)
        first.process.kill()
        world.start("b")
        world.fences[node].away = True
        world.nodes.silent.add(node)
        await world.cluster.settle(120)
        assert world.fences[node].asked, "it is suspected"
        assert not world.out_of_service(node)
        assert world.verbs("force-delete") == []
        await says(world, node, f"boot-{node}-1 {renewed(world, node)}")
        world.nodes.pull(node)
        await failed_over(world, node)

    scenario()


@failing_over
async def test_a_word_on_this_silence_counts_for_a_controller_that_finds_it(world):
    node = world.place()
    world.fences[node].away = True
    world.nodes.pull(node)
    await says(world, node, f"boot-{node}-1 {renewed(world, node)}")
    world.start()
    await failed_over(world, node)
    assert world.verbs("off") == []


@failing_over
async def test_a_node_whose_network_plugin_does_not_tolerate_the_taint_becomes_ready_again(world):
    """It boots and is not Ready; the pod that it needs for that is none of those that are let on it while it is tainted."""
    candidate = world.start()
    node = world.place()
    world.nodes.pull(node)
    await failed_over(world, node)
    assert world.out_of_service(node)
    world.nodes.boots[node] += 1
    world.nodes.off.discard(node)
    world.nodes.silent.discard(node)
    await world.nodes.show(node)
    await world.nodes.say(node, "False")
    await world.until(lambda: not world.out_of_service(node), 60)
    assert world.mark(node), "it is not Ready yet"
    await world.cluster.create(PODS, pod("network", nodeName=node))
    await world.cluster.settle(60)
    assert "deletionTimestamp" not in world.cluster.get(PODS, "network")["metadata"]
    await world.nodes.say(node, "True")
    await world.until(lambda: not world.mark(node), 60)
    forced = [one for one in candidate.happened if isinstance(one, CallReported) and one.name == "network"]
    assert forced == []


@pytest.mark.parametrize("what", [0, 1])
def test_an_etcd_that_was_restored_makes_nobody_look_silent(what):
    """All revisions are lower than what the controller has seen; of one node, so that no limit stands in the way."""

    @failing_over
    async def scenario(world):
        candidate = world.start()
        await world.cluster.settle(30)
        node = world.place()
        seen = candidate.controller.observing.tracked_nodes[node].seen
        seen._revisions[what] += 1_000_000
        await world.nodes.say(node, "False")
        await world.cluster.settle(120)
        assert world.verbs() == []
        assert not world.mark(node)
        world.nodes.pull(node)
        await failed_over(world, node)

    scenario()


@failing_over
async def test_a_mistake_of_ours_about_one_node_holds_up_no_other(world):
    """As an object that nobody foresaw brings one about."""
    first = world.start()
    gather, bad = first.controller._gathering.build, world.place()
    other = world.place("web")
    assert other != bad

    async def gathered(name, *args, **more):
        if name == bad and not world.broken[2:]:
            raise OverflowError("date value out of range")
        return await gather(name, *args, **more)

    first.controller._gathering.build = gathered
    world.nodes.pull(bad)
    await world.cluster.settle(30)
    world.nodes.pull(other)
    await world.cluster.settle(30)
    assert world.verbs("taint")[0].node == other
    await world.cluster.settle(90)
    assert not first.task.done()
    assert len(world.broken) == 3
    assert first.counted["lastcall_failover_broken_off_total",] == 3
    [sentence] = [one.sentence for one in first.controller.reconcilers if one.name == bad]
    assert "mistake" not in sentence, "it is gone on with"
    world.broken.clear()
