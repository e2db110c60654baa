"""Which changes make Pod GC and taint eviction look at pods, and how the view's look-ups follow the changes."""

import pytest

from lastcall_lab.controllers.framework.view import View, ref_of
from lastcall_lab.controllers.nodes.pod_gc import PodGarbageCollector, PodGCSettings
from lastcall_lab.controllers.nodes.taint_eviction import TaintEvictionController

TAINT = {"key": "example.com/broken", "value": "", "effect": "NoExecute"}
ADVICE = {"key": "example.com/slow", "value": "", "effect": "NoSchedule"}
FOR_A_WHILE = {"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


def node(*taints, heartbeat="1"):
    status = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}]}
    return {"metadata": {"name": "n1", "uid": "n"}, "spec": {"taints": list(taints)}, "status": status}


def pod(name="web", phase="Running", on="n1", *tolerations, **metadata):
    place = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"containers": [], "nodeName": on, "tolerations": list(tolerations)}
    return {"metadata": {**place, **metadata}, "spec": spec, "status": {"phase": phase}}


class Told:
    """A controller, told of one object after the other as the runner tells it."""

    def __init__(self, controller):
        self.controller, self.view, self.before = controller, View(), {}

    def wakes_of(self, resource, obj, gone=False):
        """The keys that are looked at then, but for those that stand for no object."""
        key = ref_of(resource, obj)
        before = self.before.pop(key, None)
        now = None if gone else obj
        self.view.apply(resource, now, before)
        if now:
            self.before[key] = now
        keys = [
            one for each in (now, before) if each for one in self.controller.affected_keys(resource, each, self.view)
        ]
        return sorted({one.name for one in keys if one.name})

    def decides(self, name="web", now=0.0):
        """About a pod."""
        return self.controller.decide(ref_of("pods", pod(name)), self.view, now)


@pytest.mark.parametrize("controller", [PodGarbageCollector, TaintEvictionController])
def test_heartbeats_and_new_states_of_pods_concern_nobody(controller):
    told = Told(controller())
    told.wakes_of("nodes", node(ADVICE))
    assert told.wakes_of("pods", pod()) == []
    assert told.wakes_of("pods", pod(phase="Failed")) == []
    assert told.wakes_of("nodes", node(ADVICE, heartbeat="2")) == []


def test_a_taint_concerns_all_pods_of_its_node_and_its_end_those_whose_time_ran():
    told = Told(TaintEvictionController())
    told.wakes_of("pods", pod("web", "Running", "n1", FOR_A_WHILE))
    told.wakes_of("pods", pod("calm", "Running", "n1", {"operator": "Exists"}))
    assert told.wakes_of("nodes", node(TAINT)) == ["calm", "web"]
    assert told.decides("web").again_in == 60
    assert told.decides("calm").again_in is None
    assert told.wakes_of("pods", pod("new")) == ["new"]
    assert told.wakes_of("nodes", node()) == ["web"]
    assert told.decides("web").actions, "it is told that the pod may stay"
    assert told.wakes_of("nodes", node(heartbeat="2")) == []


def test_a_pod_whose_time_ran_concerns_when_it_and_its_node_are_gone():
    told = Told(TaintEvictionController())
    told.wakes_of("nodes", node(TAINT))
    told.wakes_of("pods", pod("web", "Running", "n1", FOR_A_WHILE))
    told.decides()
    assert told.wakes_of("nodes", node(TAINT), gone=True) == ["web"]
    assert told.wakes_of("pods", pod(), gone=True) == ["web"]


def test_a_node_concerns_its_pods_when_it_is_gone_and_when_it_is_back():
    told = Told(PodGarbageCollector(PodGCSettings(period=20, quarantine=40)))
    told.wakes_of("nodes", node())
    told.wakes_of("pods", pod())
    assert told.wakes_of("nodes", node(), gone=True) == ["web"]
    assert not told.decides(now=0).actions
    assert not told.decides(now=20).actions, "it has been missing since then"
    assert told.wakes_of("nodes", node()) == ["web"]
    told.decides(now=21)
    assert told.wakes_of("nodes", node(heartbeat="2")) == []


def test_a_pod_that_terminates_concerns_until_it_is_gone():
    told = Told(PodGarbageCollector())
    told.wakes_of("nodes", node())
    assert told.wakes_of("pods", pod(deletionTimestamp="2026-01-01T00:00:00Z")) == ["web"]
    told.decides()
    assert told.wakes_of("pods", pod(), gone=True) == ["web"]


def test_a_pod_that_comes_to_a_node_that_was_missing_shows_that_it_is_back():
    told = Told(PodGarbageCollector())
    told.wakes_of("pods", pod())
    told.decides(now=0)
    told.decides(now=20)
    told.wakes_of("pods", pod(), gone=True)
    told.decides(now=21)
    told.wakes_of("nodes", node())
    assert told.wakes_of("pods", pod("other")) == ["other"]


def test_finished_pods_are_looked_at_when_there_are_too_many():
    told = Told(PodGarbageCollector(PodGCSettings(finished=1)))
    told.wakes_of("nodes", node())
    for name in ("a", "b"):
        told.wakes_of("pods", pod(name, phase="Running"))
    keys = []
    for obj in (pod("a", phase="Succeeded"), pod("b", phase="Failed")):
        told.view.apply("pods", obj, told.before.pop(ref_of("pods", obj)))
        keys.append(list(told.controller.affected_keys("pods", obj, told.view)))
    assert keys[0] == []
    assert len(keys[1]) == 1
    told.controller.decide(keys[1][0], told.view, 0.0)
    decision = told.controller.decide(keys[1][0], told.view, 20.0)
    assert [action.ref.name for action in decision.actions] == ["a"]


def test_an_owner_controls_what_says_so_and_the_others_depend_on_it():
    view = View()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
    mine = pod("mine", ownerReferences=[{**owner, "uid": "other"}, {**owner, "controller": True}])
    view.apply("pods", mine, None)
    view.apply("pods", pod("near", ownerReferences=[owner]), None)
    assert [one["metadata"]["name"] for one in view.controlled_by("r", "pods")] == ["mine"]
    assert [place.name for place, _ in view.dependents("r")] == ["mine", "near"]
    assert [one["metadata"]["name"] for one in view.without_controller("pods", "default")] == ["near"]
    view.apply("pods", pod("mine"), mine)
    assert view.controlled_by("r", "pods") == []
    assert [one["metadata"]["name"] for one in view.without_controller("pods", "default")] == ["mine", "near"]


def test_the_order_is_kept_as_objects_come_and_go():
    view = View()
    for name in ("b", "d"):
        view.apply("pods", pod(name), None)
    list(view.all("pods"))
    view.apply("pods", pod("c"), None)
    view.apply("pods", pod("a"), None)
    view.apply("pods", pod("d", phase="Failed"), pod("d"))
    view.apply("pods", None, pod("b"))
    view.apply("pods", None, pod("never told"))
    view.apply("pods", pod("e", namespace="other"), None)
    assert [one["metadata"]["name"] for one in view.all("pods")] == ["a", "c", "d", "e"]
    assert [one["metadata"]["name"] for one in view.all("pods", "default")] == ["a", "c", "d"]
    assert [one["metadata"]["name"] for one in view.all("pods", "other")] == ["e"]
