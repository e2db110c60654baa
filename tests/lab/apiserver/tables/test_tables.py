"""Tables: the words for durations, and what pods, nodes and others show."""

import pytest

from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.tables import build_table, parse_include
from lastcall_lab.apiserver.tables.cell_text import duration_text, few_values, selector_text
from lastcall_lab.apiserver.values.api_errors import ApiError

RESOURCES = {one.kind: one for one in built_in_resources() if not one.stored_as}
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
HOUR_AGO = "2025-12-31T23:00:00Z"


def rows(kind, *objects):
    named = [
        {
            "kind": kind,
            "apiVersion": "v1",
            **obj,
            "metadata": {"name": "x", "creationTimestamp": HOUR_AGO, **obj.get("metadata", {})},
        }
        for obj in objects
    ]
    return build_table(RESOURCES[kind], named, NOW, metadata={"resourceVersion": "1"})["rows"]


def cells(kind, obj):
    return rows(kind, obj)[0]["cells"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (179 * 60 + 59, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (730 * 86400 - 1, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_duration(seconds, words):
    assert duration_text(seconds) == words


def running(**more):
    return {"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}, **more}


def ended(code, **more):
    return {"name": "c", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": code, **more}}}


def waiting(reason, **more):
    return {"name": "c", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}, **more}


READY = [{"type": "Ready", "status": "True"}]
DELETED = {"deletionTimestamp": HOUR_AGO}
LAST = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:59:30Z"}}}


@pytest.mark.parametrize(
    ("metadata", "status", "ready", "word"),
    [
        ({}, {"phase": "Pending"}, "0/1", "Pending"),
        ({}, {"phase": "Running", "containerStatuses": [running()]}, "1/1", "Running"),
        ({}, {"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, "0/1", "ContainerCreating"),
        ({}, {"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}, "0/1", "CrashLoopBackOff"),
        ({}, {"phase": "Succeeded", "containerStatuses": [ended(0, reason="Completed")]}, "0/1", "Completed"),
        ({}, {"phase": "Failed", "containerStatuses": [ended(1)]}, "0/1", "ExitCode:1"),
        ({}, {"phase": "Failed", "containerStatuses": [ended(137, signal=9)]}, "0/1", "Signal:9"),
        ({}, {"phase": "Failed", "reason": "Evicted"}, "0/1", "Evicted"),
        (DELETED, {"phase": "Running", "containerStatuses": [running()]}, "1/1", "Terminating"),
        (DELETED, {"phase": "Running", "reason": "NodeLost"}, "0/1", "Unknown"),
        (DELETED, {"phase": "Failed", "reason": "Terminated"}, "0/1", "Terminated"),
        ({}, {"phase": "Running", "reason": "NodeLost"}, "0/1", "NodeLost"),
        (
            {},
            {"phase": "Running", "conditions": READY, "containerStatuses": [ended(0, reason="Completed"), running()]},
            "1/1",
            "Running",
        ),
        (
            {},
            {"phase": "Running", "containerStatuses": [ended(0, reason="Completed"), running()]},
            "1/1",
            "NotReady",
        ),
        (
            {},
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
            "0/1",
            "SchedulingGated",
        ),
    ],
)
def test_pod(metadata, status, ready, word):
    found = cells("Pod", {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}, "status": status})
    assert found[:4] == ["x", ready, word, "0"]
    assert found[4:] == ["60m", "<none>", "<none>", "<none>", "<none>"]


INIT = [{"name": "i0"}, {"name": "side", "restartPolicy": "Always"}, {"name": "i1"}]


@pytest.mark.parametrize(
    ("statuses", "ready", "word"),
    [
        ([{**waiting("PodInitializing"), "name": "i0"}], "0/2", "Init:0/3"),
        ([{**ended(3), "name": "i0"}], "0/2", "Init:ExitCode:3"),
        ([{**waiting("ImagePullBackOff"), "name": "i0"}], "0/2", "Init:ImagePullBackOff"),
        (
            [{**ended(0), "name": "i0"}, {**running(started=True), "name": "side"}, {**running(), "name": "i1"}],
            "1/2",
            "Init:2/3",
        ),
        (
            [{**ended(0), "name": "i0"}, {**running(started=True), "name": "side"}, {**ended(0), "name": "i1"}],
            "1/2",
            "Pending",
        ),
    ],
)
def test_pod_with_init_containers(statuses, ready, word):
    spec = {"containers": [{"name": "c"}], "initContainers": INIT}
    found = cells("Pod", {"spec": spec, "status": {"phase": "Pending", "initContainerStatuses": statuses}})
    assert found[1:3] == [ready, word]


def test_pod_restarts_say_when():
    status = {"phase": "Running", "containerStatuses": [running(restartCount=4, **LAST)]}
    assert cells("Pod", {"spec": {"containers": [{"name": "c"}]}, "status": status})[3] == "4 (30s ago)"


def test_pod_readiness_gates_and_nominated_node():
    spec = {"containers": [{"name": "c"}], "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    status = {
        "conditions": [{"type": "a", "status": "True"}],
        "nominatedNodeName": "n2",
        "podIPs": [{"ip": "10.0.0.1"}],
    }
    assert cells("Pod", {"spec": {**spec, "nodeName": "n1"}, "status": status})[5:] == ["10.0.0.1", "n1", "n2", "1/2"]


def test_a_finished_pod_says_so_beside_its_cells():
    row = rows("Pod", {"spec": {"containers": []}, "status": {"phase": "Failed"}})[0]
    assert row["conditions"] == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (
            "Node",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "old"}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": READY,
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.2", "kernelVersion": "6.12", "architecture": "amd64"},
                },
            },
            [
                "x",
                "Ready,SchedulingDisabled",
                "old,worker",
                "60m",
                "v1.36.2",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "6.12 (amd64)",
                "<unknown>",
            ],
        ),
        ("Namespace", {"status": {"phase": "Terminating"}}, ["x", "Terminating", "60m"]),
        ("Secret", {"type": "Opaque", "data": {"a": "", "b": ""}}, ["x", "Opaque", 2, "60m"]),
        ("ConfigMap", {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "60m"]),
        ("ServiceAccount", {}, ["x", "60m"]),
        ("Role", {}, ["x", HOUR_AGO]),
        ("CustomResourceDefinition", {}, ["x", HOUR_AGO]),
        (
            "Service",
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIPs": ["10.0.0.9"],
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                }
            },
            ["x", "LoadBalancer", "10.0.0.9", "<pending>", "80:30080/TCP", "60m", "<none>"],
        ),
        (
            "Service",
            {"spec": {"type": "ClusterIP", "clusterIP": "None", "selector": {"b": "2", "a": "1"}}},
            ["x", "ClusterIP", "None", "<none>", "<none>", "60m", "a=1,b=2"],
        ),
        (
            "StatefulSet",
            {
                "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
                "status": {"readyReplicas": 1},
            },
            ["x", "1/3", "60m", "c", "i"],
        ),
        (
            "Job",
            {
                "spec": {"completions": 1, "template": {}, "selector": {"matchLabels": {"a": "b"}}},
                "status": {
                    "succeeded": 1,
                    "startTime": "2025-12-31T23:00:00Z",
                    "completionTime": "2025-12-31T23:00:10Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            ["x", "Complete", "1/1", "10s", "60m", "", "", "a=b"],
        ),
        (
            "PersistentVolumeClaim",
            {
                "spec": {"volumeName": "pv", "storageClassName": "fast", "volumeMode": "Filesystem"},
                "status": {
                    "phase": "Bound",
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                },
            },
            ["x", "Bound", "pv", "1Gi", "RWO,RWX", "fast", "<unset>", "60m", "Filesystem"],
        ),
        (
            "PersistentVolume",
            {
                "metadata": DELETED,
                "spec": {
                    "capacity": {"storage": "5Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "d", "name": "data-0"},
                },
                "status": {"phase": "Bound"},
            },
            ["x", "5Gi", "RWO", "Retain", "Terminating", "d/data-0", "", "<unset>", "", "60m", "<unset>"],
        ),
        (
            "StorageClass",
            {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"},
            ["x (default)", "p", "Delete", "Immediate", False, "60m"],
        ),
        ("CSINode", {"spec": {"drivers": [{}, {}]}}, ["x", 2, "60m"]),
        ("PriorityClass", {"value": 5, "preemptionPolicy": "Never"}, ["x", 5, False, "60m", "Never"]),
        (
            "Event",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "source": {"component": "kubelet", "host": "n1"},
                "type": "Normal",
                "reason": "Killing",
                "message": " Stopping ",
                "firstTimestamp": HOUR_AGO,
                "lastTimestamp": "2025-12-31T23:59:55Z",
                "count": 3,
            },
            ["5s", "Normal", "Killing", "pod/p", "", "kubelet, n1", "Stopping", "60m", 3, "x"],
        ),
        (
            "RoleBinding",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "d"},
                ],
            },
            ["x", "Role/r", "60m", "u", "g", "d/s"],
        ),
        ("ValidatingWebhookConfiguration", {"webhooks": [{}]}, ["x", 1, "60m"]),
        ("NetworkPolicy", {"spec": {"podSelector": {}}}, ["x", "<none>", "60m"]),
        (
            "ControllerRevision",
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
                    ]
                },
                "revision": 2,
            },
            ["x", "statefulset.apps/db", 2, "60m"],
        ),
        (
            "HorizontalPodAutoscaler",
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "maxReplicas": 5,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                        }
                    ],
                },
                "status": {"currentReplicas": 2},
            },
            ["x", "Deployment/web", "cpu: <unknown>/80%", "<unset>", 5, 2, "60m"],
        ),
    ],
)
def test_kinds(kind, obj, expected):
    assert cells(kind, obj) == expected


@pytest.mark.parametrize("resource", built_in_resources(), ids=lambda one: one.qualified_name)
def test_every_kind_has_as_many_cells_as_columns_even_for_a_bookmark(resource):
    bookmark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"resourceVersion": "7"}}
    made = build_table(resource, [bookmark], NOW, metadata={})
    assert len(made["rows"][0]["cells"]) == len(made["columnDefinitions"])


def test_what_stands_beside_the_cells():
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {}}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}}
    for include, expected in (("None", None), ("Metadata", partial), ("Object", pod)):
        made = build_table(RESOURCES["Pod"], [pod], NOW, include, metadata={}, headers=False)
        assert made["rows"][0]["object"] == expected
        assert made["columnDefinitions"] is None


def test_an_unknown_include_object_is_refused():
    with pytest.raises(ApiError, match="Unable to convert to Table as requested: includeObject: Invalid value"):
        parse_include("Bad")


def test_selectors_and_lists_of_names():
    said = {"matchLabels": {"b": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}
    assert selector_text(said) == "a in (x,y),b=1"
    assert few_values("abcde") == "a,b,c + 2 more..."
