"""The failover controller beside the lab's control plane, in virtual time: what becomes of a node that is gone."""

import pytest
from support.failover.virtual_cluster import NAMES, failing_over
from support.lab.volume_kubelets import pod

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import ATTACHMENTS, EVENTS, LEASES, NODES, PODS
from lastcall.errors import Conflict
from lastcall.failover.decisions import steps
from lastcall.failover.evidence.facts import DeathAcknowledged
from lastcall.failover.reporting.controller_events import StepDecided
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.power import PowerState
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.volumes.volume_events import find_violations

ZONE = "topology.kubernetes.io/zone"


def reasons(world):
    return {one["reason"] for one in world.cluster.all(EVENTS) if one["source"]["component"] == "lastcall-controller"}


def told(world, reason):
    return sum(one["reason"] == reason for one in world.cluster.all(EVENTS))


@failing_over
async def test_a_node_without_power_is_failed_over_in_seconds(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    took = await world.until(lambda: world.place() not in (None, node))
    assert 15 <= took < 45, "suspicion, OFF twice and 20 s after the last sign of life, and what attaching takes"
    assert world.verbs("off")
    assert find_violations(world.nodes.storage.records) == []
    assert [one["spec"]["nodeName"] for one in world.cluster.all(ATTACHMENTS)] == [world.place()]


@failing_over
async def test_a_node_that_is_back_loses_what_is_ours(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node))
    assert world.out_of_service(node)
    assert world.mark(node)
    await world.nodes.boot(node)
    await world.until(lambda: not world.mark(node), 120)
    assert not world.out_of_service(node)
    await world.cluster.settle(30)
    assert find_violations(world.nodes.storage.records) == []
    assert {"FailoverBegun", "FenceOff", "NodeDead", "FailoverOver", "RemovedByForce"} <= reasons(world)
    assert not world.candidates[0].controller.reconcilers


@failing_over(policy={"mode": "Observe"})
async def test_a_policy_that_observes_does_nothing(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.cluster.settle(120)
    assert not world.mark(node)
    assert world.verbs() == []
    assert world.fences[node].asked == []
    assert told(world, "WouldFailOver") == 1
    await world.nodes.boot(node)
    await world.cluster.settle(60)
    world.nodes.pull(node)
    await world.cluster.settle(60)
    assert told(world, "WouldFailOver") == 2, "once for each time"


@failing_over(policy={"mode": "TaintOnly"})
async def test_a_policy_that_only_taints_leaves_the_rest_to_kube_controller_manager(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node), 120)
    assert {*world.verbs()} == {"off", "taint"}
    assert find_violations(world.nodes.storage.records) == []


@failing_over
async def test_a_kubelet_that_renews_its_lease_more_often_is_believed_to_be_dead_sooner(world):
    """By a person's taint. It renews every 10 s here, and would be waited for 10 s at least if its Lease lasted 40."""
    node = world.place()
    world.start()
    await world.cluster.settle(25)
    await world.cluster.patch(LEASES, node, {"spec": {"leaseDurationSeconds": 12}}, namespace="kube-node-lease")
    world.nodes.pull(node)
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    await world.cluster.patch(NODES, node, {"spec": {"taints": [taint]}}, namespace="")
    took = await world.until(lambda: world.verbs("force-delete"))
    assert took < 8
    assert world.verbs("off") == []


@failing_over(without=("attachdetach",))
async def test_without_an_attach_detach_controller_volumes_are_detached_by_lastcall_itself(world):
    """Nobody attaches here: the volume's attachment is made by hand."""
    node = world.place("web")
    attachment = {
        "metadata": {"name": "a"},
        "spec": {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": "none"}},
    }
    await world.cluster.create(ATTACHMENTS, attachment, namespace="")
    world.start(detach=True)
    world.nodes.pull(node)
    await world.until(lambda: not world.cluster.get(ATTACHMENTS, "a"), 60)
    (acted,) = world.verbs("detach")
    assert acted.name == "a"
    assert acted.evidence


@failing_over(without=("podgc", "taint-eviction-controller"))
async def test_a_pod_that_lastcall_deletes_says_that_it_is_the_target_of_a_disruption(world):
    """As kube-controller-manager's taint eviction writes it, so that a Job's failure policy can go by it."""
    cluster = world.start().controller._cluster
    fail, gone, found = cluster.fail_pod, world.place(), []

    async def failing(pod, added):
        answer = await fail(pod, added)
        live = world.cluster.get(PODS, pod.metadata.name)
        found.append(condition_of(live, "DisruptionTarget"))
        assert live["status"]["phase"] == "Failed"
        return answer

    cluster.fail_pod = failing
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    said = {(one["status"], one["reason"], one["message"]) for one in found}
    assert said == {("True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")}


@failing_over
async def test_a_policy_that_is_taken_away_ends_what_has_not_been_done(world):
    world.start()
    node = world.place()
    world.fences[node].away = True
    world.nodes.pull(node)
    await world.until(lambda: world.fences[node].asked, 60)
    await world.cluster.delete(POLICIES, "p", namespace="")
    await world.cluster.settle(10)
    asked = len(world.fences[node].asked)
    await world.cluster.settle(60)
    assert len(world.fences[node].asked) == asked


@failing_over
async def test_a_watch_event_is_acted_on_at_once(world):
    """A pod that comes to a node that is being failed over has to wait for the next look; a change of the Node does not."""
    candidate = world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node))
    await world.cluster.settle(20)
    before = len(candidate.happened)
    await world.nodes.boot(node)
    began = world.now
    await world.until(lambda: any(isinstance(one, StepDecided) for one in candidate.happened[before:]), 5)
    assert world.now - began <= 0.2


@failing_over
async def test_every_step_has_its_reason_and_every_call_its_evidence(world):
    world.start()
    node = world.place()
    pod = next(one for one in world.cluster.all(PODS) if one["spec"].get("nodeName") == node)
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node))
    decided = [one.step for one in world.happened if isinstance(one, StepDecided) and one.node == node]
    assert all(step.why for step in decided)
    order = [type(step) for step in decided if not isinstance(step, steps.Wait | steps.Done)]
    assert order[:3] == [steps.AskTarget, steps.Mark, steps.Mark]
    assert order.index(steps.SwitchOff) < order.index(steps.TaintNode) < order.index(steps.ForceDelete)
    forced = world.verbs("force-delete")
    assert pod["metadata"]["uid"] in [one.uid for one in forced]
    assert all("OFF twice" in " ".join(one.evidence) for one in forced)


@failing_over
async def test_the_status_of_a_policy_says_whether_it_is_heeded(world):
    world.start()
    await world.until(lambda: world.cluster.get(POLICIES, "p").get("status"))
    status = world.cluster.get(POLICIES, "p")["status"]
    assert status["nodes"] == 5
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions == {"Accepted": "True", "FencersWorking": "Unknown", "FencingAllowed": "Unknown"}
    await world.cluster.patch(POLICIES, "p", {"spec": {"suspectAfter": "0s"}}, namespace="")
    await world.cluster.settle(5)
    told, *_ = world.cluster.get(POLICIES, "p")["status"]["conditions"]
    assert told["status"] == "False"
    assert "suspectAfter" in told["message"]
    node = world.place()
    world.nodes.pull(node)
    await world.cluster.settle(60)
    assert not world.mark(node), "what its author wants is not known"


@failing_over
async def test_the_controllers_own_mode_is_the_most_that_is_done(world):
    world.start(mode=FailoverMode.OBSERVE)
    node = world.place()
    world.nodes.pull(node)
    await world.cluster.settle(60)
    assert not world.mark(node)
    assert world.fences[node].asked == []


@failing_over
async def test_a_node_is_noticed_to_be_lost_a_second_time(world):
    """Also one that was silent for a while, and came back before anything was done."""
    candidate = world.start(mode=FailoverMode.OBSERVE)
    node = world.place()
    world.nodes.silent.add(node)
    await world.cluster.settle(30)
    await world.nodes.back(node)
    await world.cluster.settle(30)
    assert not candidate.controller.reconcilers
    world.nodes.silent.add(node)
    await world.cluster.settle(30)
    assert [one.name for one in candidate.controller.reconcilers] == [node]


@failing_over
async def test_a_change_of_the_node_that_was_not_seen_is_not_written_over(world):
    candidate = world.start()
    await world.cluster.settle(5)
    cluster = candidate.controller._cluster
    node = await cluster.read_node("n1")
    await world.cluster.patch(NODES, "n1", {"spec": {"unschedulable": True}}, namespace="")
    with pytest.raises(Conflict):
        await cluster.update_node(node, taints=[])


@failing_over
async def test_a_taint_that_a_person_sets_is_his_word_and_stays_his(world):
    world.start()
    node = world.place()
    world.fences[node].away = True
    world.nodes.pull(node)
    await world.cluster.settle(45)
    out = {"key": "node.kubernetes.io/out-of-service", "value": "mine", "effect": "NoExecute"}
    await world.cluster.patch(NODES, node, {"spec": {"taints": [out]}}, namespace="")
    await world.until(lambda: world.place() not in (None, node), 60)
    forced = world.verbs("force-delete")
    assert not forced or "a person says so, by the taint" in " ".join(forced[0].evidence)
    assert world.verbs("off") == []
    await world.nodes.boot(node)
    await world.until(lambda: not world.mark(node), 120)
    assert [one["value"] for one in world.out_of_service(node)] == ["mine"]


@failing_over
async def test_lastcalls_own_taint_is_no_word_of_a_person(world):
    candidate = world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node), 60)
    await world.cluster.settle(5)
    (worker,) = candidate.controller.reconcilers
    assert world.out_of_service(node)
    assert not any(isinstance(one, DeathAcknowledged) for one in worker.gathered.facts)


@failing_over
async def test_of_two_nodes_that_are_lost_at_the_same_moment_one_is_fenced_if_one_may_be(world):
    """Both are in one failure domain; what is about to be marked counts before the mark is seen."""
    world.start()
    nodes = world.place(), next(name for name in NAMES if name not in (world.place(), world.place("web")))
    for name in nodes:
        await world.cluster.patch(NODES, name, {"metadata": {"labels": {ZONE: "east"}}}, namespace="")
        world.fences[name].lies = PowerState.ON
    await world.cluster.create(PODS, pod("extra", nodeName=nodes[1]))
    world.nodes.silent.update(nodes)
    await world.cluster.settle(90)
    assert len({one.node for one in world.verbs("off")}) == 1
    assert len([name for name in NAMES if world.mark(name)]) == 1


@failing_over
async def test_replacements_are_waited_for_and_named_until_they_are_ready(world):
    candidate = world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.verbs("force-delete"), 60)
    await world.cluster.settle(0.5)
    (worker,) = candidate.controller.reconcilers
    await world.until(lambda: worker.gathered.case.replacements, 10)
    assert set(worker.gathered.case.replacements) <= {"default/db-0", *(f"default/{one}" for one in webs(world))}
    await world.until(lambda: all(worker.gathered.case.replacements.values()), 60)
    assert "default/db-0" in worker.gathered.case.replacements


def webs(world):
    return [one.name for one in world.verbs("force-delete")]


@failing_over
async def test_a_node_that_is_deleted_while_it_is_failed_over_ends_nothing(world):
    """A deleted Node is no dead machine: nothing more is done about it, and others are looked after."""
    candidate = world.start()
    node = world.place()
    world.fences[node].delay = 3
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    await world.cluster.delete(NODES, node, namespace="")
    await world.cluster.settle(10)
    assert not candidate.task.done()
    assert candidate.controller.reconcilers == ()
    assert world.verbs("force-delete") == []


@failing_over(policy={"limits": {"minHealthy": 1, "settle": "60s"}})
async def test_after_its_clock_was_set_it_waits_until_its_view_is_to_be_trusted(world):
    candidate = world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.cluster.settle(5)
    candidate.clock.skew = 3600
    jumped = world.now
    await world.until(lambda: world.verbs("off"), 120)
    assert world.now - jumped >= 58
