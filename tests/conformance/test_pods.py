"""What a pod may say: each case is a rule and the field that breaks it."""

import pytest
from support.conformance.api_client import DUPLICATE, FORBIDDEN, INVALID, MISSING, REQUIRED, UNSUPPORTED, causes
from support.conformance.objects import CONTAINER, pod

from lastcall.adapters.kube.resources import PODS

source = pytest.mark.source
CORE = "pkg/apis/core/validation/validation.go"
VOLUME = {"name": "v", "emptyDir": {}}
PROBE = {"httpGet": {"port": 80}}


def container(**more):
    """Pods' containers: one, with these fields."""
    return {"containers": [{**CONTAINER, **more}]}


POD_RULES = [
    ({"containers": []}, REQUIRED, "spec.containers"),
    ({"containers": [{"image": "i"}]}, REQUIRED, "spec.containers[0].name"),
    ({"containers": [CONTAINER, CONTAINER]}, DUPLICATE, "spec.containers[1].name"),
    ({"initContainers": [CONTAINER]}, DUPLICATE, "spec.initContainers[0].name"),
    (container(name="UP"), INVALID, "spec.containers[0].name"),
    (container(image=" i"), INVALID, "spec.containers[0].image"),
    (container(image=""), REQUIRED, "spec.containers[0].image"),
    (container(imagePullPolicy="Sometimes"), UNSUPPORTED, "spec.containers[0].imagePullPolicy"),
    (container(terminationMessagePolicy="x"), UNSUPPORTED, "spec.containers[0].terminationMessagePolicy"),
    (container(ports=[{"containerPort": 0}]), REQUIRED, "spec.containers[0].ports[0].containerPort"),
    (container(ports=[{"containerPort": 70000}]), INVALID, "spec.containers[0].ports[0].containerPort"),
    (
        container(ports=[{"containerPort": 1, "protocol": "ICMP"}]),
        UNSUPPORTED,
        "spec.containers[0].ports[0].protocol",
    ),
    (
        container(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        DUPLICATE,
        "spec.containers[0].ports[1].name",
    ),
    (container(env=[{"name": ""}]), REQUIRED, "spec.containers[0].env[0].name"),
    (container(env=[{"name": "A=B"}]), INVALID, "spec.containers[0].env[0].name"),
    (
        container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        INVALID,
        "spec.containers[0].env[0].valueFrom",
    ),
    (
        container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.volumes"}}}]),
        INVALID,
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
    ),
    (
        container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
        MISSING,
        "spec.containers[0].volumeMounts[0].name",
    ),
    (
        {**container(volumeMounts=[{"name": "v", "mountPath": ""}]), "volumes": [VOLUME]},
        REQUIRED,
        "spec.containers[0].volumeMounts[0].mountPath",
    ),
    (
        {
            **container(volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]),
            "volumes": [VOLUME],
        },
        INVALID,
        "spec.containers[0].volumeMounts[1].mountPath",
    ),
    (
        {**container(volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": "../y"}]), "volumes": [VOLUME]},
        INVALID,
        "spec.containers[0].volumeMounts.subPath",
    ),
    ({"volumes": [VOLUME, VOLUME]}, DUPLICATE, "spec.volumes[1].name"),
    ({"volumes": [{**VOLUME, "hostPath": {"path": "/x"}}]}, FORBIDDEN, "spec.volumes[0].hostPath"),
    ({"volumes": [{"name": "v", "secret": {}}]}, REQUIRED, "spec.volumes[0].secret.secretName"),
    ({"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]}, INVALID, "spec.volumes[0].hostPath.path"),
    (
        {"volumes": [{"name": "v", "configMap": {"name": "m", "defaultMode": 512}}]},
        INVALID,
        "spec.volumes[0].configMap.defaultMode",
    ),
    (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        INVALID,
        "spec.containers[0].resources.requests",
    ),
    (
        container(resources={"requests": {"cpu": "-1"}}),
        INVALID,
        "spec.containers[0].resources.requests[cpu]",
    ),
    (
        container(resources={"limits": {"lots": "1"}}),
        INVALID,
        "spec.containers[0].resources.limits[lots]",
    ),
    (
        container(resources={"requests": {"example.com/x": "1"}}),
        REQUIRED,
        "spec.containers[0].resources.limits",
    ),
    (container(livenessProbe={}), REQUIRED, "spec.containers[0].livenessProbe"),
    (
        container(livenessProbe={**PROBE, "periodSeconds": -1}),
        INVALID,
        "spec.containers[0].livenessProbe.periodSeconds",
    ),
    (
        container(livenessProbe={**PROBE, "successThreshold": 2}),
        INVALID,
        "spec.containers[0].livenessProbe.successThreshold",
    ),
    (
        container(readinessProbe={"httpGet": {"port": "no-such-long-name-of-a-port"}}),
        INVALID,
        "spec.containers[0].readinessProbe.httpGet.port",
    ),
    (
        container(readinessProbe={**PROBE, "exec": {"command": ["x"]}}),
        FORBIDDEN,
        "spec.containers[0].readinessProbe.httpGet",
    ),
    (container(lifecycle={"preStop": {}}), REQUIRED, "spec.containers[0].lifecycle.preStop"),
    (
        container(lifecycle={"preStop": {"exec": {"command": []}}}),
        REQUIRED,
        "spec.containers[0].lifecycle.preStop.exec.command",
    ),
    (
        container(lifecycle={"preStop": {"sleep": {"seconds": 60}}}),
        INVALID,
        "spec.containers[0].lifecycle.preStop.sleep",
    ),
    (
        {"initContainers": [{"name": "i", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]},
        FORBIDDEN,
        "spec.initContainers[0].lifecycle",
    ),
    (
        {"initContainers": [{"name": "i", "image": "i", "restartPolicy": "Sometimes"}]},
        UNSUPPORTED,
        "spec.initContainers[0].restartPolicy",
    ),
    ({"restartPolicy": "Sometimes"}, UNSUPPORTED, "spec.restartPolicy"),
    ({"dnsPolicy": "x"}, UNSUPPORTED, "spec.dnsPolicy"),
    ({"dnsPolicy": "None"}, REQUIRED, "spec.dnsConfig"),
    ({"activeDeadlineSeconds": 0}, INVALID, "spec.activeDeadlineSeconds"),
    ({"hostname": "a.b"}, INVALID, "spec.hostname"),
    ({"nodeSelector": {"a b": "c"}}, INVALID, "spec.nodeSelector"),
    ({"tolerations": [{"operator": "Equal"}]}, INVALID, "spec.tolerations[0].operator"),
    ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, INVALID, "spec.tolerations[0].operator"),
    (
        {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3, "effect": "NoSchedule"}]},
        INVALID,
        "spec.tolerations[0].effect",
    ),
    ({"readinessGates": [{"conditionType": "a b"}]}, INVALID, "spec.readinessGates[0].conditionType"),
    (
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]},
        INVALID,
        "spec.topologySpreadConstraints[0].maxSkew",
    ),
    (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        REQUIRED,
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
    ),
    (
        {"hostNetwork": True, **container(ports=[{"containerPort": 80, "hostPort": 81}])},
        INVALID,
        "spec.containers[0].ports[0].hostPort",
    ),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, DUPLICATE, "spec.schedulingGates[1]"),
    ({"securityContext": {"runAsUser": -1}}, INVALID, "spec.securityContext.runAsUser"),
    (
        container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        INVALID,
        "spec.containers[0].securityContext",
    ),
    ({"hostAliases": [{"ip": "x"}]}, INVALID, "spec.hostAliases[0].ip"),
    ({"os": {"name": "dos"}}, UNSUPPORTED, "spec.os"),
    ({"ephemeralContainers": [CONTAINER]}, FORBIDDEN, "spec.ephemeralContainers"),
]


@source(CORE)
@pytest.mark.parametrize(("spec", "reason", "field"), POD_RULES, ids=[f"{r}-{f}" for _, r, f in POD_RULES])
async def test_pods_that_are_refused(api, spec, reason, field):
    """422; the cause has the reason and the path of the field."""
    status = await api.create(PODS, pod(**spec)).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source(CORE)
async def test_all_faults_are_told_at_once(api):
    """Each a cause; the message has them all."""
    body = pod(restartPolicy="x", dnsPolicy="y", containers=[{"name": "UP", "image": ""}])
    status = await api.create(PODS, body).refused(422, "Invalid")
    assert len(status["details"]["causes"]) == 4
    assert status["message"].startswith('Pod "p" is invalid: [')


@source("https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/")
async def test_a_sidecar_has_probes_and_hooks(api):
    """An init container that restarts always may have what containers have."""
    hook = {"preStop": {"sleep": {"seconds": 1}}}
    sidecar = {"name": "s", "image": "i:1", "restartPolicy": "Always", "lifecycle": hook, "readinessProbe": PROBE}
    made = await api.create(PODS, pod(initContainers=[sidecar]))
    assert made["spec"]["initContainers"][0]["restartPolicy"] == "Always"


@source("pkg/api/pod/warnings.go")
async def test_what_is_odd_in_a_pod_is_warned_of(api):
    """A header for each thing; the pod is made."""
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    odd = [{**CONTAINER, "env": twice, "resources": {"requests": {"memory": "100m"}}}]
    reply = await api.create(PODS, pod(containers=odd)).reply()
    assert reply.status == 201
    assert "hides previous definition of" in reply.headers["warning"]
    assert 'fractional byte value \\"100m\\" is invalid' in reply.headers["warning"]


@source("pkg/apis/core/validation/validation.go")
@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"observedGeneration": -1}, "status.observedGeneration"),
        (
            {"conditions": [{"type": "x", "status": "True", "observedGeneration": -1}]},
            "status.conditions[0].observedGeneration",
        ),
        ({"conditions": [{"type": "a b", "status": "True"}]}, "status.conditions[0].Type"),
    ],
    ids=["pod", "condition", "type"],
)
async def test_values_of_a_status(api, status, field):
    """Generations are not negative, and types of conditions are qualified names."""
    await api.create(PODS, pod())
    refusal = await api.patch(PODS, "p", {"status": status}, sub="status").refused(422, "Invalid")
    assert causes(refusal) == [("FieldValueInvalid", field)]
