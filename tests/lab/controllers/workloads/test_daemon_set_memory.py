"""What a DaemonSet's controller remembers of nodes and pods changes nothing of what it decides."""

from hypothesis import given
from hypothesis import strategies as st

from lastcall_lab.controllers.framework.findings_cache import FindingsCache
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.workloads.daemon_sets import DaemonSetController

KEY = ObjectRef("daemonsets.apps", "default", "logs")
MADE = "2026-01-01T00:00:00Z"
UID = "d"
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": UID, "controller": True}


def daemon(image="one", surge=0, pause=0):
    template = {"metadata": {"labels": {"app": "logs"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    rolling = {"maxSurge": surge, "maxUnavailable": 0 if surge else 1}
    spec = {
        "selector": {"matchLabels": {"app": "logs"}},
        "template": template,
        "minReadySeconds": pause,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    metadata = {"name": "logs", "namespace": "default", "uid": UID, "creationTimestamp": MADE, "generation": 1}
    return {"metadata": metadata, "spec": spec}


def node(name, tainted):
    spec = {"taints": [{"key": "example.com/broken", "value": "", "effect": tainted}]} if tainted else {}
    return {"metadata": {"name": name, "uid": name, "labels": {}}, "spec": spec}


def pod(name, on, phase, ready, letters, going):
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": MADE}
    metadata |= {"labels": {"app": "logs", "controller-revision-hash": letters}, "ownerReferences": [OWNER]}
    if going:
        metadata["deletionTimestamp"] = MADE
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": MADE}]
    return {
        "metadata": metadata,
        "spec": {"containers": [], "nodeName": on},
        "status": {"phase": phase, "conditions": conditions},
    }


class Cluster:
    """A view that is changed object by object; the DaemonSet has the revisions that its controller wants."""

    def __init__(self):
        self.view, self.known = View(), {}

    def has(self, resource, name, obj, namespace=""):
        before = self.known.pop((resource, name), None)
        if obj is not None:
            self.known[resource, name] = obj
        if obj is not None or before is not None:
            self.view.apply(resource, obj, before)

    def wants(self, daemon):
        self.has("daemonsets.apps", "logs", daemon)
        for action in DaemonSetController().decide(KEY, self.view, 0.0).actions:
            if getattr(action, "resource", "") == "controllerrevisions.apps":
                metadata = {**action.obj["metadata"], "uid": "r", "creationTimestamp": MADE}
                self.has(action.resource, metadata["name"], {**action.obj, "metadata": metadata})


def letters(image):
    cluster = Cluster()
    cluster.wants(daemon(image))
    (found,) = cluster.view.all("controllerrevisions.apps")
    return found["metadata"]["labels"]["controller-revision-hash"]


HASHES = [letters("one"), letters("two")]
NAMES = ("n1", "n2", "n3")
NODES = st.one_of(st.none(), st.builds(node, st.sampled_from(NAMES), st.sampled_from(["", "NoSchedule", "NoExecute"])))
PODS = st.builds(
    pod,
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from([*NAMES, ""]),
    st.sampled_from(["Pending", "Running", "Succeeded"]),
    st.booleans(),
    st.sampled_from(HASHES),
    st.booleans(),
)
STEPS = st.one_of(
    st.builds(lambda one: ("nodes", one["metadata"]["name"], one), NODES.filter(bool)),
    st.builds(lambda name: ("nodes", name, None), st.sampled_from(NAMES)),
    st.builds(lambda one: ("pods", one["metadata"]["name"], one), PODS),
    st.builds(lambda name: ("pods", name, None), st.sampled_from(["a", "b", "c", "d"])),
    st.builds(
        lambda *how: ("daemonsets.apps", "logs", daemon(*how)), st.sampled_from(["one", "two"]), st.integers(0, 1)
    ),
)


@given(st.lists(st.lists(STEPS, min_size=1, max_size=4), max_size=8), st.sampled_from([0, 30]))
def test_a_controller_with_a_memory_decides_as_one_without(rounds, pause):
    cluster, old = Cluster(), DaemonSetController()
    cluster.wants(daemon(pause=pause))
    for number, steps in enumerate(rounds):
        for resource, name, obj in steps:
            if resource == "daemonsets.apps":
                cluster.wants(obj)
            else:
                cluster.has(resource, name, obj)
        now = 1767225600.0 + 10 * number
        assert old.decide(KEY, cluster.view, now) == DaemonSetController().decide(KEY, cluster.view, now)


def test_with_another_template_the_pods_that_were_new_are_old():
    cluster, controller = Cluster(), DaemonSetController()
    cluster.wants(daemon("one"))
    cluster.has("nodes", "n1", node("n1", ""))
    cluster.has("pods", "a", pod("a", "n1", "Running", ready=True, letters=HASHES[0], going=False))
    (told,) = controller.decide(KEY, cluster.view, 0.0).actions
    assert told.body["status"]["updatedNumberScheduled"] == 1
    cluster.wants(daemon("two"))
    told, gone, _ = controller.decide(KEY, cluster.view, 0.0).actions
    assert "updatedNumberScheduled" not in told.body["status"]
    assert gone.ref.name == "a"


def test_what_rests_on_an_object_is_found_again_when_it_is_another_and_goes_with_it():
    kept, asked = FindingsCache(), []

    def find(obj):
        asked.append(obj["n"])
        return obj["n"]

    one, two = {"n": 1}, {"n": 2}
    assert kept.find_for(KEY, "basis", [("a", one), ("b", two)], find) == [1, 2]
    assert kept.find_for(KEY, "basis", [("a", one), ("b", {"n": 3})], find) == [1, 3]
    kept.find_for(KEY, "basis", [("a", one)], find)
    kept.find_for(KEY, "basis", [("a", one), ("b", {"n": 3})], find)
    assert asked == [1, 2, 3, 3]
    kept.find_for(KEY, "other", [("a", one)], find)
    kept.forget(KEY)
    kept.find_for(KEY, "other", [("a", one)], find)
    assert asked[4:] == [1, 1]
