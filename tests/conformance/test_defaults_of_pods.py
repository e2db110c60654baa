"""What the server fills into a new pod: defaults, the quality of service, and how quantities are written."""

import pytest
from support.conformance.objects import CONTAINER, meta, pod

from lastcall.adapters.kube.resources import PODS

source = pytest.mark.source
CORE = "pkg/apis/core/v1/defaults.go"


@source(CORE)
async def test_defaults_of_pods(api):
    """What a pod is if nothing is said."""
    spec = (await api.create(PODS, {**meta("p"), "spec": {"containers": [dict(CONTAINER)], "schedulerName": "x"}}))[
        "spec"
    ]
    assert spec["restartPolicy"] == "Always"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["securityContext"] == {}
    assert spec["enableServiceLinks"] is True
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"


@source(CORE)
async def test_defaults_of_containers(api):
    """Where its last words are, and no resources."""
    (container,) = (await api.create(PODS, pod()))["spec"]["containers"]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == {}


@source(CORE)
@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("host:5000/a", "Always"),
        ("a@sha256:" + "0" * 64, "IfNotPresent"),
        ("a:latest@sha256:" + "0" * 64, "Always"),
    ],
)
async def test_when_an_image_is_pulled(api, image, policy):
    """Always for :latest or neither tag nor digest, else if it is not there."""
    made = await api.create(PODS, pod(containers=[{"name": "c", "image": image}]))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


@source(CORE)
async def test_defaults_of_probes(api):
    """One second's patience, every ten seconds, three failures."""
    probe = {"httpGet": {"port": 80}}
    made = await api.create(PODS, pod(containers=[{**CONTAINER, "readinessProbe": probe}]))
    assert made["spec"]["containers"][0]["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


@source(CORE)
async def test_requests_are_the_limits_if_not_said(api):
    """A limit without a request is the request too."""
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    made = await api.create(PODS, pod(containers=[{**CONTAINER, "resources": resources}]))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


@source("pkg/apis/core/helper/qos/qos.go")
@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}}, "Burstable"),
    ],
)
async def test_the_quality_of_service_is_computed(api, resources, quality):
    """By requests and limits, as quantities and not as text."""
    made = await api.create(PODS, pod(containers=[{**CONTAINER, "resources": resources}]))
    assert made["status"]["qosClass"] == quality


@source("pkg/registry/core/pod/strategy.go")
async def test_a_new_pod_is_pending(api):
    """Whatever its status says."""
    made = await api.create(PODS, {**pod(), "status": {"phase": "Running", "podIP": "10.1.2.3"}})
    assert made["status"]["phase"] == "Pending"
    assert "podIP" not in made["status"]


@source(CORE)
async def test_ports_of_pods_on_the_hosts_network(api):
    """The host's port is the container's."""
    container = {**CONTAINER, "ports": [{"containerPort": 31999}]}
    made = await api.create(PODS, pod(hostNetwork=True, containers=[container]))
    assert made["spec"]["containers"][0]["ports"] == [{"containerPort": 31999, "hostPort": 31999, "protocol": "TCP"}]


@source("pkg/apis/core/v1/conversion.go")
async def test_fields_of_the_hosts_namespaces_are_top_level(api):
    """hostPID is a field of the spec, and left out when false."""
    made = await api.create(PODS, pod(hostPID=True, hostIPC=False))
    assert made["spec"]["hostPID"] is True
    assert "hostIPC" not in made["spec"]


@source(CORE)
@pytest.mark.parametrize(
    ("volume", "filled"),
    [
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "m"}}, {"configMap": {"name": "m", "defaultMode": 420}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
    ],
)
async def test_defaults_of_volumes(api, volume, filled):
    """A volume without a source is an empty directory; files have mode 0644."""
    made = await api.create(PODS, pod(volumes=[{"name": "v", **volume}]))
    assert made["spec"]["volumes"] == [{"name": "v", **filled}]


@source("pkg/apis/core/v1/defaults.go")
async def test_quantities_are_written_canonically(api):
    """1000m is 1, 1024Mi is 1Gi, 0.5 is 500m."""
    requests = {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "1.5Gi"}
    made = await api.create(PODS, pod(containers=[{**CONTAINER, "resources": {"requests": requests}}]))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "1",
        "memory": "1Gi",
        "ephemeral-storage": "1536Mi",
    }
