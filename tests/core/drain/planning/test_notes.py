"""What a person should know before a drain: notes, which never hold it."""

import json

import pytest
from support.drain.objects import node_object, owned_object, owner_reference, pod_object
from support.drain.plans import blocked_of, notes_of, workload_object

from lastcall.names import BALANCER_MARKS, TO_BE_DELETED

EMPTY_DIR = [{"name": "cache", "emptyDir": {}}]
TAINT = {"effect": "NoSchedule"}


def about(word, *objects, **more):
    """The notes with this word; no note holds the drain."""
    assert blocked_of(*objects, **more) == []
    return [note for note in notes_of(*objects, **more) if word in note]


def test_a_quiet_drain_has_no_notes():
    pods = [owned_object("a"), owned_object("b", node="n2")]
    assert notes_of(*pods, nodes=("n1",)) == []


# -- workloads -----------------------------------------------------------------------------------------------------------

REPLICA_SET = workload_object("ReplicaSet", "web", owner=owner_reference("Deployment", "web"))


@pytest.mark.parametrize(
    ("objects", "single"),
    [
        ([workload_object(replicas=1), REPLICA_SET], True),
        ([workload_object(replicas=2), {**REPLICA_SET, "spec": {"replicas": 1}}], False),
        ([workload_object("ReplicaSet", "web", replicas=1)], True),
        ([], True),
        ([owned_object("other", node="n2")], False),
        ([owned_object("other", node="n2", phase="Failed")], True),
    ],
)
def test_singletons(objects, single):
    assert bool(about("only replica: n/p", owned_object(), *objects)) is single


def test_pods_that_are_made_once_are_no_singletons():
    assert about("only replica", owned_object(kind="Job", version="batch/v1"), pod_object("bare"), force=True) == []


def test_lost_local_data():
    pods = [owned_object("a", volumes=EMPTY_DIR), owned_object("done", volumes=EMPTY_DIR, phase="Succeeded")]
    assert "is lost of: n/a (" in about("emptyDir", *pods, delete_emptydir_data=True)[0]
    assert about("emptyDir data", *pods) == []
    assert about("emptyDir data", owned_object(), delete_emptydir_data=True) == []


def test_bare_pods_and_orphans():
    other = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "other", "namespace": "n"}}
    pods = [pod_object("bare"), pod_object("orphan", owner=owner_reference("DaemonSet", "gone")), other]
    assert "again: n/bare (" in about("nothing makes", *pods, force=True)[0]
    assert "not exist: n/orphan (" in about("DaemonSet", *pods, force=True)[0]
    assert about("nothing makes", owned_object()) == []


def test_a_pod_that_needs_two_options():
    assert (
        "n/p (give both --force and --delete-emptydir-data)" in about("more than one", pod_object(volumes=EMPTY_DIR))[0]
    )
    assert about("more than one", pod_object()) == []


def test_daemon_sets_that_are_not_known():
    pod = pod_object(owner=owner_reference("DaemonSet", "agents"))
    assert about("assumed to exist: n/agents", pod, ignore_daemonsets=True)
    known = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agents", "namespace": "n"}}
    assert about("assumed", pod, known, ignore_daemonsets=True) == []


def test_pods_that_are_moved_by_another_program():
    assert about("live migration", owned_object(annotations={"descheduler.alpha.kubernetes.io/request-evict-only": ""}))


# -- guards --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ({"redis": {}}, "undoes the preparation if the pod stays"),
        ({"http": {"port": 80}}, "point of no return"),
        ({"http": {"port": 80, "reversible": True}}, "undoes the preparation if the pod stays, as its settings say"),
        ({"exec": {"reversible": "yes"}}, "point of no return"),
        ({"acme": {}}, "is not known"),
    ],
)
def test_a_guarded_pod_is_asked_first(provider, said):
    guard = {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "GuardPolicy",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {"provider": provider, "selector": {}},
    }
    [note] = about("GuardPolicy n/g", owned_object(), guard)
    assert said in note


# -- room ----------------------------------------------------------------------------------------------------------------


def room(**allocatable):
    return {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}


def small(**more):
    return owned_object("small", requests={"cpu": "500m", "memory": "1Gi"}, **more)


NEEDY = {"nodeSelector": {"disk": "ssd"}}
AFFINE = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}]
            }
        }
    }
}

ROOM = {
    "room": ([node_object("n2", allocatable=room()), small()], ""),
    "no cpu": ([node_object("n2", allocatable=room(cpu="499m")), small()], "no other node has room"),
    "no memory": ([node_object("n2", allocatable=room(memory="900Mi")), small()], "no other node has room"),
    "no place for a pod": ([node_object("n2", allocatable=room(pods="0")), small()], "no other node has room"),
    "taken": (
        [node_object("n2", allocatable=room()), small(), owned_object("big", node="n2", requests={"cpu": "3600m"})],
        "no other node has room",
    ),
    "taken by a pod that has finished": (
        [
            node_object("n2", allocatable=room()),
            small(),
            owned_object("big", node="n2", requests={"cpu": "4"}, phase="Failed"),
        ],
        "",
    ),
    "cordoned": ([node_object("n2", allocatable=room(), unschedulable=True), small()], "no other node takes pods"),
    "gone": ([node_object("n2", allocatable=room(), ready="Unknown"), small()], "no other node takes pods"),
    "tainted": (
        [node_object("n2", allocatable=room(), taints=[{"key": "a", **TAINT}]), small()],
        "no other node has room",
    ),
    "tolerated": (
        [
            node_object("n2", allocatable=room(), taints=[{"key": "a", **TAINT}]),
            small(spec={"tolerations": [{"operator": "Exists"}]}),
        ],
        "",
    ),
    "selected": ([node_object("n2", allocatable=room()), small(spec=NEEDY)], "no other node has room"),
    "selected and there": ([node_object("n2", allocatable=room(), labels={"disk": "ssd"}), small(spec=NEEDY)], ""),
    "affinity": (
        [node_object("n2", allocatable=room(), labels={"disk": "ssd"}), small(spec=AFFINE)],
        "no other node has room",
    ),
    "affinity and there": ([node_object("n2", allocatable=room(), labels={"disk": "hdd"}), small(spec=AFFINE)], ""),
    "unknown": ([node_object("n2"), small()], ""),
    "a node that does not tell how many pods it takes": (
        [node_object("n2", allocatable={"cpu": "4", "memory": "8Gi"}), small()],
        "",
    ),
    "no device": (
        [node_object("n2", allocatable=room()), owned_object(requests={"acme.io/gpu": "1"})],
        "no other node has room",
    ),
    "a device": (
        [node_object("n2", allocatable=room(**{"acme.io/gpu": "1"})), owned_object(requests={"acme.io/gpu": "1"})],
        "",
    ),
    "bare pods do not come back": (
        [node_object("n2", allocatable=room(cpu="0")), pod_object(requests={"cpu": "1"})],
        "",
    ),
    "init containers": (
        [
            node_object("n2", allocatable=room()),
            small(spec={"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]}),
        ],
        "no other node has room",
    ),
    "sidecars": (
        [
            node_object("n2", allocatable=room()),
            small(
                spec={
                    "initContainers": [
                        {"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3600m"}}}
                    ]
                }
            ),
        ],
        "no other node has room",
    ),
}


EMPTY_TERM = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}


def test_an_affinity_without_requirements_matches_no_node():
    pod = small(spec={"affinity": {"nodeAffinity": EMPTY_TERM}})
    assert about("no other node has room", node_object("n2", allocatable=room()), pod)


@pytest.mark.parametrize("name", ROOM)
def test_room_elsewhere(name):
    objects, said = ROOM[name]
    found = about("no other node", *objects, nodes=("n1",))
    assert bool(found) is bool(said)
    assert all(said in note for note in found)


def test_each_pod_takes_room():
    nodes = [node_object("n2", allocatable=room(cpu="2")), node_object("n3", allocatable=room(cpu="1"))]
    pods = [owned_object(f"p{number}", requests={"cpu": "1"}) for number in range(4)]
    [note] = about("no other node has room", *nodes, *pods)
    assert note.partition(" for: ")[2].partition(" (")[0] == "n/p3"


def test_a_node_of_the_same_drain_takes_nothing():
    nodes = [node_object("n1", allocatable=room()), node_object("n2", allocatable=room())]
    assert about("no other node takes pods", *nodes, small(), nodes=("n1", "n2"))


# -- volumes -------------------------------------------------------------------------------------------------------------


def claimed(name="p", claim="data", **more):
    return owned_object(name, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": claim}}], **more)


def claim(name="data", volume="pv"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"volumeName": volume},
    }


def volume(name="pv", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def zone(value):
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}]
    return {"required": {"nodeSelectorTerms": terms}}


@pytest.mark.parametrize(
    ("spec", "stays"),
    [
        ({"local": {"path": "/d"}}, True),
        ({"hostPath": {"path": "/d"}}, True),
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, False),
        ({"csi": {"driver": "d", "volumeHandle": "h"}, "nodeAffinity": zone("a")}, False),
        ({"csi": {"driver": "d", "volumeHandle": "h"}, "nodeAffinity": zone("b")}, True),
    ],
)
def test_volumes_that_cannot_follow(spec, stays):
    objects = [node_object("n2", labels={"zone": "a"}), claimed(), claim(), volume(**spec)]
    assert (
        bool(about("cannot follow them, so that their replacements stay Pending: n/p (PersistentVolume pv)", *objects))
        is stays
    )


def csi_node(name, count):
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": "d", "nodeID": name, **allocatable}]},
    }


@pytest.mark.parametrize(("count", "missing"), [(None, False), (2, False), (1, True), (0, True)])
def test_slots_for_volumes(count, missing):
    csi = {"csi": {"driver": "d", "volumeHandle": "h"}}
    objects = [
        node_object("n2"),
        csi_node("n2", count),
        *(claimed(), claim(), volume(**csi)),
        *(claimed("there", "other", node="n2"), claim("other", "pv2"), volume("pv2", **csi)),
    ]
    assert bool(about("no other node can attach their volumes (CSINode allocatable.count): n/p", *objects)) is missing


def test_a_node_without_the_driver_has_no_slot():
    csi = {"csi": {"driver": "other", "volumeHandle": "h"}}
    objects = [node_object("n2"), csi_node("n2", None), claimed(), claim(), volume(**csi)]
    assert about("no other node can attach their volumes", *objects)


def test_devices():
    pod = owned_object(spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]})
    rule = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"taint": {"key": "acme.io/broken", "effect": "NoExecute"}},
    }
    assert "ResourceClaims: n/p (" in about("devices of the node", pod)[0]
    assert "broken (acme.io/broken:NoExecute)" in about("tainted", pod, rule)[0]
    assert about("tainted", owned_object(), rule) == []


# -- other programs ------------------------------------------------------------------------------------------------------


def kured(text, name="kured"):
    metadata = {"name": name, "namespace": "kube-system", "annotations": {"weave.works/kured-node-lock": text}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}


def lease(name="node-n1", namespace="medik8s-leases", **spec):
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600, **spec},
    }


def machine(node="n1", **metadata):
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "c", **metadata},
        "status": {"nodeRef": {"name": node}},
    }


MAINTENANCE = {
    "apiVersion": "nodemaintenance.medik8s.io/v1beta1",
    "kind": "NodeMaintenance",
    "metadata": {"name": "disk"},
    "spec": {"nodeName": "n1", "reason": "new disk"},
}
DELETE = {"cluster.x-k8s.io/delete-machine": ""}
RENEWED, EXPIRED = "2026-01-01T11:30:00.000000Z", "2026-01-01T11:00:00.000000Z"  # an hour ago, to the second

OWNERS = {
    "Karpenter": node_object("n1", taints=[{"key": "karpenter.sh/disrupted", **TAINT}]),
    "cluster-autoscaler": node_object("n1", taints=[{"key": "ToBeDeletedByClusterAutoscaler", **TAINT}]),
    "lastcall controller": node_object("n1", annotations={"lastcall.dev/failover": "{}"}),
    "its agent": node_object("n1", annotations={"lastcall.dev/node-shutdown": "{}"}),
    "kured": kured(json.dumps({"nodeID": "n1", "created": RENEWED})),
    "kured reboots it": kured(json.dumps({"nodeID": "n1", "created": RENEWED, "TTL": 1801 * 10**9})),
    "kured reboots it (": kured(json.dumps({"nodeID": "n1", "created": "some day", "TTL": 1})),
    "kured reboots it (a": kured(json.dumps({"nodeID": "n1", "created": RENEWED, "TTL": 10**30})),
    "kured reboots": kured(json.dumps({"maxOwners": 2, "locks": [{"nodeID": "n2"}, {"nodeID": "n1"}]})),
    "node-maintenance maintains": lease(renewTime=RENEWED),
    "node-maintenance": lease(),
    "node-maintenance-operator drains it (NodeMaintenance disk: new disk)": MAINTENANCE,
    "Cluster API removes": machine(deletionTimestamp=RENEWED),
    "Cluster API is to remove": machine(annotations=DELETE),
}


@pytest.mark.parametrize("name", OWNERS)
def test_another_owner_of_the_node_is_named(name):
    assert len(about(f"node n1: {name}", OWNERS[name])) == 1


NO_OWNERS = [
    node_object("n1", taints=[{"key": TO_BE_DELETED, **TAINT}], annotations={BALANCER_MARKS: "label,taint"}),
    kured(json.dumps({"nodeID": "n2"})),
    kured(json.dumps({"nodeID": "n1", "created": RENEWED, "TTL": 1800 * 10**9})),
    kured(json.dumps({"locks": [{"nodeID": "n1", "created": EXPIRED, "TTL": 1}]})),
    kured("not JSON"),
    kured("[1]"),
    kured(json.dumps({"locks": "n1"})),
    lease("node-n2"),
    lease(namespace="kube-node-lease"),
    lease(holderIdentity=""),
    lease(renewTime=EXPIRED),
    machine(),
    machine("n2", annotations=DELETE),
]


@pytest.mark.parametrize("one", NO_OWNERS)
def test_what_owns_another_node_or_nothing_is_not(one):
    assert about("node n1", one) == []
