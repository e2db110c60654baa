"""Pod files: what is read, and what is said about those that are wrong."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from support.common.documents import SHAPES, message

from lastcall.errors import InvalidInput
from lastcall.model.pod_file import PodFile, read_pods

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n"
ITEMS = "apiVersion: v1\nkind: List\nitems:\n"
KINDS = "must be List, PodList or Pod"
WRONG_PODS = [
    ("", f"f: document: empty: {KINDS}"),
    ("7", f"f: document: 7: {KINDS}"),
    ("[]", f"f: document: []: {KINDS}"),
    ("{}", f"f: kind: missing: {KINDS}"),
    ("kind: 7", f"f: kind: 7: {KINDS}"),
    ("kind: Deployment\napiVersion: apps/v1\n", f'f: kind: "Deployment": {KINDS}'),
    ("kind: NodeList\n---\nkind: Service\n", f'f: kind: "NodeList": {KINDS}\nf: kind: "Service": {KINDS}'),
    ("kind: List\napiVersion: v1\n", "f: items: missing: must be a list"),
    ("kind: PodList\napiVersion: v1\nitems: {}\n", "f: items: {}: must be a list"),
    ("kind: List\napiVersion: v2\nitems: []\n", 'f: apiVersion: "v2": must be v1'),
    (ITEMS + "- 7\n- kind: 7\n",
     'f: items[0]: 7: must be a mapping of kind Pod\nf: items[1]: {"kind": 7}: must be a mapping of kind Pod'),
    (ITEMS + "- kind: Pod\n", "f: items[0]: metadata: missing: must be given"),
    (ITEMS + "- {kind: Pod, metadata: {namespace: shop}}\n", "f: items[0] (shop): metadata.name: missing: must be given"),
    ("kind: Pod\nmetadata: []\n", "f: metadata: []: must be a mapping, not a list"),
    ("kind: Pod\napiVersion: v2\nmetadata: {name: web}\n", 'f: web: apiVersion: "v2": must be v1'),
    ("kind: Pod\nmetadata: {name: 7}\n", "f: metadata.name: 7: must be text, not an integer"),
    (POD + "spec: [x]\n", 'f: shop/web: spec: ["x"]: must be a mapping, not a list'),
    (POD + "spec: {nodeName: 7}\n", "f: shop/web: spec.nodeName: 7: must be text, not an integer"),
    (POD + "spec: {priority: high}\n", 'f: shop/web: spec.priority: "high": must be an integer, not text'),
    (POD + "spec: {priority: 2147483648}\n",
     "f: shop/web: spec.priority: 2147483648: must be an integer <= 2147483647"),
    (POD + "spec: {priorityClassName: on}\n",
     "f: shop/web: spec.priorityClassName: true: must be text, not true or false"),
    (POD + "spec: {terminationGracePeriodSeconds: 30s}\n",
     'f: shop/web: spec.terminationGracePeriodSeconds: "30s": must be an integer, not text'),
    (POD + "spec: {terminationGracePeriodSeconds: -1}\n",
     "f: shop/web: spec.terminationGracePeriodSeconds: -1: must be an integer >= 0"),
    (POD + "spec: {containers: {}}\n", "f: shop/web: spec.containers: {}: must be a list, not a mapping"),
    (POD + "spec: {containers: [{image: x}]}\n", "f: shop/web: spec.containers[0].name: missing: must be given"),
    (POD + "spec: {containers: [{name: a, lifecycle: {preStop: {sleep: {}}}}]}\n",
     "f: shop/web: spec.containers[0].lifecycle.preStop.sleep.seconds: missing: must be given"),
    (POD + "spec: {containers: [{name: a, lifecycle: {preStop: {sleep: {seconds: -1}}}}]}\n",
     "f: shop/web: spec.containers[0].lifecycle.preStop.sleep.seconds: -1: must be an integer >= 0"),
    (POD + "spec: {containers: [{name: a, lifecycle: {preStop: {exec: {command: sleep 5}}}}]}\n",
     'f: shop/web: spec.containers[0].lifecycle.preStop.exec.command: "sleep 5": must be a list, not text'),
    (POD + "spec: {containers: [{name: a, lifecycle: {preStop: {httpGet: {path: /}}}}]}\n",
     "f: shop/web: spec.containers[0].lifecycle.preStop.httpGet.port: missing: must be given"),
    (POD + "status: {phase: 7}\n", "f: shop/web: status.phase: 7: must be text, not an integer"),
    ("kind: Pod\nmetadata: {name: web, labels: {a: b, c: 1}}\n",
     "f: web: metadata.labels.c: 1: must be text, not an integer"),
    ("kind: Pod\nmetadata: {name: web, name: db}\n", 'f: line 2, column 23: key "name" already set in map'),
    # everything at once
    (POD + "spec: {priority: x}\n---\n" + ITEMS + """\
- {kind: Pod, metadata: {name: a, namespace: n}, spec: {priority: x, containers: [{name: 1}, {name: b, image: 2}]}}
- {kind: Pod, metadata: {name: b, namespace: n}}
- {kind: Pod, metadata: {name: c, namespace: n}, status: 7}
---
9
""",
     """\
f: document 1 (shop/web): spec.priority: "x": must be an integer, not text
f: document 2 items[0] (n/a): spec.priority: "x": must be an integer, not text
f: document 2 items[0] (n/a): spec.containers[0].name: 1: must be text, not an integer
f: document 2 items[0] (n/a): spec.containers[1].image: 2: must be text, not an integer
f: document 2 items[2] (n/c): status: 7: must be a mapping, not an integer
f: document 3: 9: must be List, PodList or Pod"""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRONG_PODS, ids=range(len(WRONG_PODS)))
def test_what_is_said_about_wrong_pods(text, expected):
    assert message(read_pods, text) == expected


def keys(text):
    return [pod.key for pod in read_pods(text.encode(), "f").pods]


def test_lists_pods_and_documents():
    assert keys(POD) == ["shop/web"]
    assert keys(ITEMS + "- {kind: Pod, apiVersion: v1, metadata: {name: a}}\n") == ["default/a"]
    assert keys("kind: PodList\napiVersion: v1\nitems: [{metadata: {name: a}}, {metadata: {name: b}}]\n") == [
        "default/a",
        "default/b",
    ]
    assert keys('{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Pod", "metadata": {"name": "a"}}]}') == [
        "default/a"
    ]
    assert keys(f"{POD}---\nkind: PodList\nitems: [{{metadata: {{name: a}}}}]\n---\n") == ["shop/web", "default/a"]
    assert keys("kind: List\nitems: []\n") == []
    assert keys("kind: PodList\nitems:\n") == []


def test_a_list_may_stand_in_a_list():
    inner = {"kind": "PodList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}
    outer = {"kind": "List", "items": [{"kind": "List", "items": [inner, {"kind": "Service"}]}]}
    found = read_pods(json.dumps(outer).encode(), "f")
    assert [pod.metadata.name for pod in found.pods] == ["a", "b"]
    assert found.warnings == ("f: 1 Service passed over: only pods count",)
    inner["items"].append(7)
    with pytest.raises(InvalidInput, match=r"items\[0\]\.items\[0\]\.items\[2\]: 7: must be a mapping of kind Pod"):
        read_pods(json.dumps(outer).encode(), "f")


def test_what_kubectl_prints_is_read_whole():
    text = """
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: "2026-09-01T10:00:00Z"
    generateName: web-
    labels: {app: web}
    name: web-0
    namespace: shop
    ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: 1-2-3, controller: true}]
    resourceVersion: "123"
    uid: 4-5-6
  spec:
    containers:
    - env: [{name: A, value: "1"}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
      image: nginx
      lifecycle: {preStop: {httpGet: {path: /stop, port: http, scheme: HTTP}}}
      name: nginx
      ports: [{containerPort: 80, name: http, protocol: TCP}]
      resources: {limits: {cpu: 100m}}
      volumeMounts: [{mountPath: /x, name: tok, readOnly: true}]
    nodeName: n1
    preemptionPolicy: PreemptLowerPriority
    priority: 0
    restartPolicy: Always
    securityContext: {}
    terminationGracePeriodSeconds: 30
    tolerations: [{effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}]
    volumes: [{name: tok, projected: {defaultMode: 420}}]
  status:
    conditions: [{lastProbeTime: null, lastTransitionTime: "2026-09-01T10:00:00Z", status: "True", type: Ready}]
    containerStatuses: [{name: nginx, ready: true, state: {running: {startedAt: "2026-09-01T10:00:00Z"}}}]
    phase: Running
    podIP: 10.0.0.7
kind: List
metadata:
  resourceVersion: ""
"""
    (pod,) = read_pods(text.encode(), "f").pods
    assert (pod.key, pod.spec.priority, pod.status.pod_ip) == ("shop/web-0", 0, "10.0.0.7")
    assert pod.spec.containers[0].pre_stop.http_get.port == "http"


def test_nulls_count_as_absent():
    (pod,) = read_pods((POD + "spec: {nodeName: , priority: , containers: }\nstatus:\n").encode(), "f").pods
    assert (pod.spec.node_name, pod.spec.priority, pod.status.phase) == ("", None, "Pending")


def test_other_kinds_are_passed_over_with_a_warning():
    text = f"{POD}---\nkind: Deployment\n---\n{ITEMS}- kind: Service\n- {{metadata: {{name: a}}}}\n- kind: Service\n"
    found = read_pods(text.encode(), "f")
    assert [pod.key for pod in found.pods] == ["shop/web", "default/a"]
    assert found.warnings == ("f: 1 Deployment, 2 Service passed over: only pods count",)


def test_pods_of_the_same_name_are_told():
    found = read_pods(f"{POD}---\n{POD}".encode(), "f")
    assert len(found.pods) == 2
    assert found.warnings == ("f: more than one pod of the same name: shop/web",)


@given(SHAPES)
def test_whatever_a_pod_file_holds_it_is_read_or_refused(value):
    document = {"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"}, "spec": value}, value]}
    with suppress(InvalidInput):
        assert isinstance(read_pods(json.dumps(document).encode(), "f"), PodFile)
