"""What pods, workloads and the kinds around them may say: each case is a rule and the field that breaks it."""

import pytest
from support.cluster_api import causes, unique
from support.cluster_objects import CONTAINER, changed, job, meta, pod, service, workload

from lastcall.adapters.kube.resources import (
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
    resource,
)

source = pytest.mark.source
CORE = "pkg/apis/core/validation/validation.go"
APPS = "pkg/apis/apps/validation/validation.go"
BATCH = "pkg/apis/batch/validation/validation.go"
CRON_JOBS = resource("batch", "v1", "cronjobs")
SCALERS = resource("autoscaling", "v2", "horizontalpodautoscalers")
POLICIES = resource("networking.k8s.io", "v1", "networkpolicies")
INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"
FORBIDDEN, DUPLICATE, MISSING = "FieldValueForbidden", "FieldValueDuplicate", "FieldValueNotFound"
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


WORKLOAD_RULES = [
    (DEPLOYMENTS, {"spec.selector": None}, REQUIRED, "spec.selector"),
    (DEPLOYMENTS, {"spec.selector": {}}, INVALID, "spec.selector"),
    (DEPLOYMENTS, {"spec.template.metadata.labels": {"other": "x"}}, INVALID, "spec.template.metadata.labels"),
    (DEPLOYMENTS, {"spec.replicas": -1}, INVALID, "spec.replicas"),
    (DEPLOYMENTS, {"spec.template.spec.restartPolicy": "Never"}, UNSUPPORTED, "spec.template.spec.restartPolicy"),
    (DEPLOYMENTS, {"spec.strategy": {"type": "Big"}}, UNSUPPORTED, "spec.strategy"),
    (
        DEPLOYMENTS,
        {"spec.strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        FORBIDDEN,
        "spec.strategy.rollingUpdate",
    ),
    (
        DEPLOYMENTS,
        {"spec.strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        INVALID,
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    (
        DEPLOYMENTS,
        {"spec.strategy": {"rollingUpdate": {"maxUnavailable": "110%"}}},
        INVALID,
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    (
        DEPLOYMENTS,
        {"spec.progressDeadlineSeconds": 5, "spec.minReadySeconds": 5},
        INVALID,
        "spec.progressDeadlineSeconds",
    ),
    (REPLICA_SETS, {"spec.minReadySeconds": -1}, INVALID, "spec.minReadySeconds"),
    (STATEFUL_SETS, {"spec.podManagementPolicy": "Wild"}, INVALID, "spec.podManagementPolicy"),
    (STATEFUL_SETS, {"spec.updateStrategy": {"type": "x"}}, INVALID, "spec.updateStrategy"),
    (
        STATEFUL_SETS,
        {"spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}},
        INVALID,
        "spec.updateStrategy.rollingUpdate.partition",
    ),
    (STATEFUL_SETS, {"spec.ordinals": {"start": -1}}, INVALID, "spec.ordinals.start"),
    (
        STATEFUL_SETS,
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "x", "whenScaled": "Retain"}},
        UNSUPPORTED,
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
    ),
    (
        DAEMON_SETS,
        {
            "spec.replicas": None,
            "spec.updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        },
        INVALID,
        "spec.updateStrategy.rollingUpdate.maxSurge",
    ),
    (
        DAEMON_SETS,
        {"spec.replicas": None, "spec.template.spec.restartPolicy": "OnFailure"},
        UNSUPPORTED,
        "spec.template.spec.restartPolicy",
    ),
]


@source(APPS)
@pytest.mark.parametrize(
    ("kind", "changes", "reason", "field"),
    WORKLOAD_RULES,
    ids=[f"{k.plural}-{r}-{f}" for k, _, r, f in WORKLOAD_RULES],
)
async def test_workloads_that_are_refused(api, kind, changes, reason, field):
    """422 with reason and field."""
    body = workload("w")
    for path, value in changes.items():
        body = changed(body, path, value)
    status = await api.create(kind, body).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


JOB_RULES = [
    ({"parallelism": -1}, INVALID, "spec.parallelism"),
    ({"backoffLimit": -1}, INVALID, "spec.backoffLimit"),
    ({"completionMode": "Indexed", "parallelism": 1}, REQUIRED, "spec.completions"),
    ({"completionMode": "Wild"}, UNSUPPORTED, "spec.completionMode"),
    ({"selector": {"matchLabels": {"a": "b"}}}, INVALID, "spec.selector"),
    ({"ttlSecondsAfterFinished": -1}, INVALID, "spec.ttlSecondsAfterFinished"),
    ({"podReplacementPolicy": "Never"}, UNSUPPORTED, "spec.podReplacementPolicy"),
    ({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}, INVALID, "spec.podFailurePolicy.rules[0]"),
    ({"managedBy": "nobody"}, INVALID, "spec.managedBy"),
]


@source(BATCH)
@pytest.mark.parametrize(("spec", "reason", "field"), JOB_RULES, ids=[f"{r}-{f}" for _, r, f in JOB_RULES])
async def test_jobs_that_are_refused(api, spec, reason, field):
    """422 with reason and field."""
    status = await api.create(JOBS, job("j", **spec)).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source(BATCH)
@pytest.mark.parametrize("policy", ["Always", ""])
async def test_pods_of_jobs_end(api, policy):
    """A job's template says Never or OnFailure."""
    body = changed(job("j"), "spec.template.spec.restartPolicy", policy or None)
    status = await api.create(JOBS, body).refused(422, "Invalid")
    assert causes(status)[0][1] == "spec.template.spec.restartPolicy"


OTHER_RULES = [
    (CRON_JOBS, {"schedule": "often", "jobTemplate": {"spec": job("x")["spec"]}}, INVALID, "spec.schedule"),
    (
        CRON_JOBS,
        {"schedule": "@daily", "concurrencyPolicy": "x", "jobTemplate": {"spec": job("x")["spec"]}},
        UNSUPPORTED,
        "spec.concurrencyPolicy",
    ),
    (
        CRON_JOBS,
        {"schedule": "@daily", "timeZone": "Nowhere/City", "jobTemplate": {"spec": job("x")["spec"]}},
        INVALID,
        "spec.timeZone",
    ),
    (SERVICES, {"ports": []}, REQUIRED, "spec.ports"),
    (SERVICES, {"ports": [{"port": 0}]}, INVALID, "spec.ports[0].port"),
    (SERVICES, {"ports": [{"port": 1}, {"port": 2}]}, REQUIRED, "spec.ports[0].name"),
    (SERVICES, {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}, DUPLICATE, "spec.ports[1]"),
    (SERVICES, {"ports": [{"port": 1, "protocol": "x"}]}, UNSUPPORTED, "spec.ports[0].protocol"),
    (SERVICES, {"ports": [{"port": 1, "nodePort": 30000}]}, FORBIDDEN, "spec.ports[0].nodePort"),
    (SERVICES, {"ports": [{"port": 1}], "type": "x"}, UNSUPPORTED, "spec.type"),
    (SERVICES, {"ports": [{"port": 1}], "sessionAffinity": "x"}, UNSUPPORTED, "spec.sessionAffinity"),
    (SERVICES, {"ports": [{"port": 1}], "clusterIP": "1.2"}, INVALID, "spec.clusterIPs[0]"),
    (SERVICES, {"type": "ExternalName"}, REQUIRED, "spec.externalName"),
    (SERVICES, {"ports": [{"port": 1}], "selector": {"a b": "c"}}, INVALID, "spec.selector"),
    (CLAIMS, {"resources": {"requests": {"storage": "1Gi"}}}, REQUIRED, "spec.accessModes"),
    (CLAIMS, {"accessModes": ["ReadWriteOnce"]}, REQUIRED, "spec.resources[storage]"),
    (
        CLAIMS,
        {"accessModes": ["Sometimes"], "resources": {"requests": {"storage": "1Gi"}}},
        UNSUPPORTED,
        "spec.accessModes",
    ),
    (
        SCALERS,
        {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 0},
        INVALID,
        "spec.maxReplicas",
    ),
    (
        SCALERS,
        {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 1,
            "minReplicas": 2,
        },
        INVALID,
        "spec.maxReplicas",
    ),
    (POLICIES, {"podSelector": {"matchLabels": {"a b": "c"}}}, INVALID, "spec.podSelector.matchLabels"),
    (POLICIES, {"podSelector": {}, "policyTypes": ["x"]}, UNSUPPORTED, "spec.policyTypes[0]"),
]


@source(CORE)
@pytest.mark.parametrize(
    ("kind", "spec", "reason", "field"), OTHER_RULES, ids=[f"{k.plural}-{r}-{f}" for k, _, r, f in OTHER_RULES]
)
async def test_others_that_are_refused(api, kind, spec, reason, field):
    """422 with reason and field."""
    status = await api.create(kind, {**meta(unique("x")), "spec": spec}).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source(CORE)
@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        ({"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}, REQUIRED, "spec.capacity"),
        ({"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}, REQUIRED, "spec.accessModes"),
        ({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}, REQUIRED, "spec"),
    ],
)
async def test_volumes_that_are_refused(api, spec, reason, field):
    """Capacity, modes and one source."""
    status = await api.create(VOLUMES, {**meta(unique("pv")), "spec": spec}).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source("pkg/apis/storage/validation/validation.go")
async def test_storage_classes_that_are_refused(api):
    """They name who provides."""
    status = await api.create(STORAGE_CLASSES, {**meta(unique("sc")), "provisioner": ""}).refused(422, "Invalid")
    assert causes(status)[0] == (REQUIRED, "provisioner")


@source("pkg/apis/discovery/validation/validation.go")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"addressType": "x", "endpoints": []}, "addressType"),
        ({"addressType": "IPv4", "endpoints": [{"addresses": []}]}, "endpoints[0].addresses"),
        ({"addressType": "IPv4", "endpoints": [{"addresses": ["x"]}]}, "endpoints[0].addresses[0]"),
        ({"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}]}, "endpoints[0].addresses[0]"),
    ],
)
async def test_slices_of_endpoints_that_are_refused(api, body, field):
    """Types and addresses."""
    status = await api.create(ENDPOINT_SLICES, {**meta("s"), **body}).refused(422, "Invalid")
    assert field in [found for _, found in causes(status)], status["message"]


@source(CORE)
async def test_all_faults_are_told_at_once(api):
    """Each a cause; the message has them all."""
    body = pod(restartPolicy="x", dnsPolicy="y", containers=[{"name": "UP", "image": ""}])
    status = await api.create(PODS, body).refused(422, "Invalid")
    assert len(status["details"]["causes"]) == 4
    assert status["message"].startswith('Pod "p" is invalid: [')


@source("pkg/registry/core/service/strategy.go")
async def test_a_service_changes_its_type(api):
    """To NodePort and back; the port of the nodes comes and goes."""
    await api.create(SERVICES, service())
    opened = await api.patch(SERVICES, "s", {"spec": {"type": "NodePort"}})
    assert opened["spec"]["ports"][0]["nodePort"]
    closed = await api.patch(SERVICES, "s", {"spec": {"type": "ClusterIP"}})
    assert "nodePort" not in closed["spec"]["ports"][0]
    assert closed["spec"]["clusterIP"] == opened["spec"]["clusterIP"]


@source("pkg/registry/batch/job/strategy.go")
async def test_a_suspended_job_may_be_scheduled_otherwise(api):
    """While it waits, its template's node selector may change (KEP-2926)."""
    await api.create(JOBS, job("j"))
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    assert (await api.patch(JOBS, "j", patch))["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}


@source("pkg/registry/batch/job/strategy.go")
async def test_a_job_changes_how_many_run(api):
    """parallelism is free, completions are not."""
    await api.create(JOBS, job("j"))
    assert (await api.patch(JOBS, "j", {"spec": {"parallelism": 3}}))["spec"]["parallelism"] == 3
    status = await api.patch(JOBS, "j", {"spec": {"completions": 3}}).refused(422, "Invalid")
    assert causes(status) == [(INVALID, "spec.completions")]


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
