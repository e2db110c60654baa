"""The failover controller beside the lab's control plane: what fences, persons, watchdogs and nodes themselves prove."""

from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.model.power import PowerState
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall_lab.volumes.volume_events import find_violations


@failing_over
async def test_a_node_that_is_cut_off_and_still_writes_is_switched_off_before_anything_is_forced(world):
    world.start()
    node = world.place()
    world.nodes.silent.add(node)
    await world.until(lambda: world.place() not in (None, node))
    assert node in world.nodes.off
    assert world.verbs()[0] == "off"
    assert world.verbs()[1] == "taint"
    assert find_violations(world.nodes.storage.records) == []


@failing_over(policy={"powerOn": "AfterFailover"})
async def test_a_machine_is_switched_on_again_when_nothing_is_left_to_force(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: not world.mark(node) and world.verbs("on"), 240)
    assert not world.out_of_service(node)
    assert world.verbs().index("force-delete") < world.verbs().index("on")
    assert find_violations(world.nodes.storage.records) == []


@failing_over
async def test_a_device_of_another_machine_is_never_told_to_switch_off(world):
    world.start()
    node = world.place()
    world.fences[node].wrong = "00000009-1111-4222-8333-444455556666"
    world.nodes.silent.add(node)
    await world.cluster.settle(180)
    assert [verb for verb, _ in world.fences[node].asked if verb == "off"] == []
    assert world.verbs() == []
    assert world.place() is None, "it stays where it may still run"
    world.fences[node].wrong = None
    await world.until(lambda: world.place() not in (None, node), 120)


@failing_over
async def test_a_device_that_says_on_lets_nothing_be_forced(world):
    world.start()
    node = world.place()
    world.fences[node].lies = PowerState.ON
    world.nodes.silent.add(node)
    await world.cluster.settle(180)
    assert {*world.verbs()} == {"off"}
    assert not world.out_of_service(node)
    world.fences[node].lies = None
    await world.until(lambda: world.place() not in (None, node), 120)
    assert find_violations(world.nodes.storage.records) == []


@failing_over
async def test_a_device_that_does_not_answer_is_asked_again(world):
    world.start()
    node = world.place()
    world.fences[node].away = True
    world.nodes.pull(node)
    await world.cluster.settle(90)
    assert not world.out_of_service(node)
    world.fences[node].away = False
    await world.until(lambda: world.place() not in (None, node), 120)


@failing_over
async def test_a_kubelet_that_speaks_again_before_it_was_switched_off_is_left_alone(world):
    world.start()
    node = world.place()
    world.fences[node].away = True
    world.nodes.silent.add(node)
    await world.until(lambda: world.fences[node].asked, 60)
    await world.nodes.back(node)
    await world.until(lambda: not world.mark(node), 180)
    assert world.place() == node
    assert world.verbs() == []


@failing_over
async def test_a_person_who_acknowledges_spares_the_device(world):
    world.start()
    node = world.place()
    world.fences[node].away = True
    world.nodes.pull(node)
    await world.cluster.settle(40)
    said = {"metadata": {"annotations": {"lastcall.dev/acknowledged-dead": f"boot-{node}-1"}}}
    await world.cluster.patch(NODES, node, said, namespace="")
    await world.until(lambda: world.place() not in (None, node), 60)
    assert world.verbs("off") == []


@failing_over
async def test_a_node_that_says_that_it_goes_down_is_not_fenced_before_its_deadline(world):
    world.start()
    await world.cluster.settle(20)
    node = world.place()
    begun = world.now
    await world.says(node, seconds=100)
    world.nodes.pull(node)
    await world.until(lambda: world.verbs("off"), 200)
    assert world.now - begun >= 100
    assert [one.verb for one in world.happened if hasattr(one, "verb")][0] == "off"


@failing_over
async def test_what_a_node_has_said_to_have_ended_and_unmounted_needs_no_fence(world):
    """The volumes stay: kube-controller-manager detaches them, without the taint, when the node has unmounted them."""
    world.start()
    await world.cluster.settle(20)
    node = world.place()
    (pod,) = [one for one in world.cluster.all(PODS) if one["metadata"]["labels"]["app"] == "db"]
    world.nodes.pull(node)
    await world.says(node, seconds=600, gone=[pod["metadata"]["uid"]])
    await world.until(lambda: world.verbs("force-delete"), 120)
    (forced,) = world.verbs("force-delete")
    assert forced.uid == pod["metadata"]["uid"]
    assert world.verbs("off") == []


@failing_over
async def test_a_shutdown_that_was_called_off_holds_nothing_back(world):
    world.start()
    await world.cluster.settle(20)
    node = world.place()
    await world.says(node, seconds=600, outcome="Cancelled")
    world.nodes.pull(node)
    await world.until(lambda: world.verbs("off"), 60)


@failing_over(policy={"fencers": []})
async def test_an_armed_watchdog_proves_the_end_when_its_bound_is_over(world):
    world.start()
    await world.cluster.settle(20)
    node = world.place()
    promise = WatchdogPromise.from_timing(f"boot-{node}-1", WatchdogTiming(lease=20, pet=5, timeout=15))
    await world.promises(node, promise)
    await world.cluster.settle(10)
    renewed = world.now
    await world.promises(node, promise)
    world.nodes.pull(node)
    await world.until(lambda: world.verbs("taint"), 240)
    assert promise.armed_timing.reset_bound <= world.now - renewed <= promise.armed_timing.reset_bound + 35
    await world.until(lambda: world.place() not in (None, node))
    assert find_violations(world.nodes.storage.records) == []


@failing_over(policy={"fencers": []})
async def test_without_a_fencer_and_a_watchdog_silence_proves_nothing(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.cluster.settle(600)
    assert world.verbs() == []
    assert not world.out_of_service(node)
