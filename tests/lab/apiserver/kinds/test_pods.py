"""Pods on the lab's API server: what they default to, and what requests see of them."""

import pytest
from support.lab.pod_requests import MERGE, PODS, container, made, pod, with_api

from lastcall_lab.apiserver.kinds.image_names import is_latest
from lastcall_lab.apiserver.kinds.pod_defaults import set_pod_defaults, set_template_defaults

# -- defaults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "latest"),
    [
        ("app", True),
        ("app:latest", True),
        ("localhost:5000/app", True),
        ("registry.example:5000/team/app:latest", True),
        ("app:1", False),
        ("localhost:5000/app:1", False),
        ("app@sha256:0123", False),
        ("app:latest@sha256:0123", True),
        ("Team/app", True),
        ("Team/App", False),
        ("registry.example/Team/App", False),
        ("", False),
    ],
)
def test_the_tag_latest(image, latest):
    assert is_latest(image) == latest


def test_defaults_of_a_pod():
    obj = pod(
        hostNetwork=True,
        containers=[
            {
                "name": "c",
                "image": "i:1",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
                "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
        ],
        volumes=[{"name": "a"}, {"name": "b", "secret": {"secretName": "s"}}, {"name": "c", "hostPath": {"path": "/"}}],
        serviceAccount="robot",
    )
    set_pod_defaults(obj)
    spec, container = obj["spec"], obj["spec"]["containers"][0]
    assert spec["serviceAccountName"] == "robot"
    assert spec["enableServiceLinks"] is True
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert container["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "periodSeconds": 5,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert spec["volumes"][0]["emptyDir"] == {}
    assert spec["volumes"][1]["secret"]["defaultMode"] == 0o644
    assert spec["volumes"][2]["hostPath"]["type"] == ""


def test_nothing_is_finer_than_a_thousandth():
    sized = made(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100u", "memory": "1Gi"}}}])
    assert sized["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1m", "memory": "1Gi"}


def test_a_template_defaults_to_less_than_a_pod():
    template = {"spec": {"terminationGracePeriodSeconds": -1, "containers": [{"name": "c", "image": "i"}]}}
    template["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    set_template_defaults(template)
    assert template["metadata"] == {}
    assert template["spec"]["restartPolicy"] == "Always"
    assert template["spec"]["terminationGracePeriodSeconds"] == -1
    assert "enableServiceLinks" not in template["spec"]
    assert "requests" not in template["spec"]["containers"][0]["resources"]


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"ephemeral-storage": "1Gi"}, {}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1024Mi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
        ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
        ({"cpu": "0"}, {}, "BestEffort"),
    ],
)
def test_quality_of_service(requests, limits, expected):
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}
    assert made(containers=[container])["status"]["qosClass"] == expected


def test_every_container_must_be_guaranteed():
    full = {"cpu": "1", "memory": "1Gi"}
    guaranteed = {"name": "a", "image": "i", "resources": {"requests": full, "limits": full}}
    obj = made(containers=[guaranteed], initContainers=[{"name": "b", "image": "i"}])
    assert obj["status"]["qosClass"] == "Burstable"


def test_a_pod_behind_gates_says_why_it_waits():
    condition = made(schedulingGates=[{"name": "example.com/g"}])["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


# -- on a server -------------------------------------------------------------------------------------------------------


def binding(**more):
    return {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}, **more}


@with_api
async def test_binding(api):
    """It brings annotations, and takes effect once."""
    await api.good("POST", PODS, pod())
    await api.good("PATCH", f"{PODS}/p/status", {"status": {"nominatedNodeName": "n1"}}, media=MERGE)
    await api.good("POST", f"{PODS}/p/binding?dryRun=All", binding())
    assert "nodeName" not in (await api.good("GET", f"{PODS}/p"))["spec"]
    await api.good("POST", f"{PODS}/p/binding", binding(metadata={"name": "p", "annotations": {"a": "b"}}))
    bound = await api.good("GET", f"{PODS}/p")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert bound["metadata"]["generation"] == 1
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert "nominatedNodeName" not in bound["status"]
    _, _, message = await api.refused("POST", f"{PODS}/p/binding", binding())
    assert message.endswith('pod p is already assigned to node "n1"')


@with_api
async def test_a_pod_on_its_way_out_gets_no_node(api):
    await api.good("POST", PODS, pod(metadata={"finalizers": ["example.com/hold"]}))
    await api.good("DELETE", f"{PODS}/p")
    code, reason, message = await api.refused("POST", "/api/v1/namespaces/default/bindings", binding())
    assert (code, reason) == (409, "Conflict")
    assert message.endswith("pod p is being deleted, cannot be assigned to a host")


@with_api
async def test_a_binding_names_its_pod(api):
    await api.good("POST", PODS, pod())
    code, _, message = await api.refused("POST", f"{PODS}/p/binding", binding(metadata={"name": "q"}))
    assert (code, message) == (400, "name in URL does not match name in Binding object")
    code, reason, _ = await api.refused("GET", "/api/v1/namespaces/default/bindings")
    assert (code, reason) == (405, "MethodNotAllowed")


@with_api
async def test_ephemeral_containers_come_and_never_go(api):
    await api.good("POST", PODS, pod())
    path = f"{PODS}/p/ephemeralcontainers"
    change = {"spec": {"nodeName": "n9", "ephemeralContainers": [{"name": "e", "image": "i"}]}}
    answer = await api.good("PATCH", path, change, media=MERGE)
    assert answer["spec"]["ephemeralContainers"][0]["terminationMessagePolicy"] == "File"
    assert "nodeName" not in answer["spec"]
    assert answer["metadata"]["generation"] == 2
    code, _, message = await api.refused("PATCH", path, {"spec": {"ephemeralContainers": None}}, media=MERGE)
    assert code == 422
    assert 'existing ephemeral containers "e" may not be removed' in message


@with_api
async def test_resize(api):
    sized = container(resources={"requests": {"cpu": "1"}})
    await api.good("POST", PODS, pod(containers=[sized]))
    more = {"spec": {"containers": [{**sized, "image": "other", "resources": {"requests": {"cpu": "2"}}}]}}
    answer = await api.good("PATCH", f"{PODS}/p/resize", more, media=MERGE)
    assert answer["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert answer["spec"]["containers"][0]["image"] == "i"
    none = {"spec": {"containers": [{**sized, "resources": {}}]}}
    _, _, message = await api.refused("PATCH", f"{PODS}/p/resize", none, media=MERGE)
    assert "Pod QOS Class may not change as a result of resizing" in message
    assert "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed" in message


@with_api
async def test_field_selectors(api):
    await api.good("POST", PODS, pod("a", nodeName="n1", hostNetwork=True))
    await api.good("POST", PODS, pod("b", restartPolicy="Never"))
    for selector, expected in {
        "spec.nodeName=n1": ["a"],
        "spec.host=n1": ["a"],
        "spec.hostNetwork=true": ["a"],
        "spec.restartPolicy=Never,status.phase=Pending": ["b"],
        "spec.schedulerName!=default-scheduler": [],
        "spec.serviceAccountName=default": ["a", "b"],
    }.items():
        found = await api.good("GET", f"{PODS}?fieldSelector={selector.replace('=', '%3D')}")
        assert [item["metadata"]["name"] for item in found["items"]] == expected, selector
