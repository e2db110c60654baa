"""Creation: what is answered, and what the server fills in."""

import pytest
from support.cluster_api import b64, unique
from support.cluster_objects import CONTAINER, config_map, job, meta, pod, service, workload

from lastcall.adapters.kube.resources import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
    resource,
)

source = pytest.mark.source
CREATE = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go"
STORE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go"
CORE = "pkg/apis/core/v1/defaults.go"
APPS = "pkg/apis/apps/v1/defaults.go"
SECRETS = resource("", "v1", "secrets")
CRON_JOBS = resource("batch", "v1", "cronjobs")
POLICIES = resource("networking.k8s.io", "v1", "networkpolicies")
SCALERS = resource("autoscaling", "v2", "horizontalpodautoscalers")
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}


@source(CREATE)
async def test_creation_answers_201_with_the_object(api):
    """201, and the object as it is stored."""
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    assert reply.status == 201
    assert (reply.body["kind"], reply.body["apiVersion"]) == ("ConfigMap", "v1")
    assert reply.body == await api.get(CONFIG_MAPS, "m")


@source(STORE)
async def test_a_name_that_is_taken(api):
    """409, reason AlreadyExists, with the object's name and resource in the details."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.create(CONFIG_MAPS, config_map()).refused(409, "AlreadyExists")
    assert status["message"] == 'configmaps "m" already exists'
    assert status["details"] == {"name": "m", "kind": "configmaps"}


@source(STORE)
async def test_a_taken_name_in_a_group_names_the_group(api):
    """The message has the qualified resource."""
    await api.create(REPLICA_SETS, workload("r"))
    status = await api.create(REPLICA_SETS, workload("r")).refused(409, "AlreadyExists")
    assert status["message"] == 'replicasets.apps "r" already exists'
    assert status["details"] == {"name": "r", "group": "apps", "kind": "replicasets"}


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_creates_nothing(api):
    """The answer is as if; defaults and uid are in it, but the object is not stored."""
    reply = await api.create(PODS, pod(), dryRun="All").reply()
    assert reply.status == 201
    assert reply.body["metadata"]["uid"]
    assert reply.body["spec"]["restartPolicy"] == "Always"
    assert "resourceVersion" not in reply.body["metadata"]
    assert await api.gone(PODS, "p")


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_finds_taken_names(api):
    """A dry run is refused for what would be refused."""
    await api.create(CONFIG_MAPS, config_map())
    await api.create(CONFIG_MAPS, config_map(), dryRun="All").refused(409, "AlreadyExists")


@source(CREATE)
async def test_nothing_is_created_at_an_objects_path(api):
    """POST goes to the collection."""
    await api.ask("POST", api.at(CONFIG_MAPS, "m"), config_map()).refused(405, "MethodNotAllowed")


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go")
async def test_nothing_is_created_in_a_namespace_that_is_not_there(api):
    """404 that names the namespace."""
    path = CONFIG_MAPS.path(unique("missing"))
    status = await api.ask("POST", path, config_map()).refused(404, "NotFound")
    assert status["details"]["kind"] == "namespaces"


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_unknown_fields_are_warned_of(api):
    """By default an unknown field is dropped with a warning that has its path."""
    reply = await api.create(CONFIG_MAPS, {**config_map(), "dada": {}}).reply()
    assert reply.status == 201
    assert reply.headers["warning"] == '299 - "unknown field \\"dada\\""'
    assert "dada" not in reply.body


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_unknown_fields_are_refused_by_strict_validation(api):
    """400; all of them are named, each with its path."""
    body = pod(restartPolizy="x", containers=[{**CONTAINER, "imagine": "y"}])
    status = await api.create(PODS, body, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'unknown field "spec.containers[0].imagine"' in status["message"]
    assert 'unknown field "spec.restartPolizy"' in status["message"]
    assert "strict decoding error" in status["message"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_duplicate_fields_are_refused_by_strict_validation(api):
    """A key that comes twice in an object of JSON."""
    body = b'{"metadata":{"name":"m"},"data":{"a":"1"},"data":{"b":"2"}}'
    status = await api.ask("POST", api.at(CONFIG_MAPS), body, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'duplicate field "data"' in status["message"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_of_duplicate_fields_the_last_counts(api):
    """Without strict validation they are warned of."""
    body = b'{"metadata":{"name":"m"},"immutable":true,"immutable":false}'
    reply = await api.ask("POST", api.at(CONFIG_MAPS), body).reply()
    assert reply.good().get("immutable") is False
    assert 'duplicate field \\"immutable\\"' in reply.headers["warning"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_field_validation_may_be_switched_off(api):
    """Ignore means no warning."""
    reply = await api.create(CONFIG_MAPS, {**config_map(), "dada": {}}, fieldValidation="Ignore").reply()
    assert (reply.status, "warning" in reply.headers) == (201, False)


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_a_body_of_yaml(api):
    """application/yaml is read as well."""
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: cm\ndata:\n  a: 'yes'\n"
    made = await api.ask("POST", api.at(CONFIG_MAPS), body, kind="application/yaml")
    assert made["data"] == {"a": "yes"}


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_a_body_of_yaml_has_the_types_of_json(api):
    """A number is no text."""
    body = b"metadata: {name: cm}\ndata: {a: 1}\n"
    status = await api.ask("POST", api.at(CONFIG_MAPS), body, kind="application/yaml").refused(400, "BadRequest")
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in status["message"]


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_yaml_is_of_version_1_1(api):
    """An unquoted y is true, and no text."""
    body = b"metadata: {name: cm}\ndata: {a: y}\n"
    status = await api.ask("POST", api.at(CONFIG_MAPS), body, kind="application/yaml").refused(400, "BadRequest")
    assert "cannot unmarshal bool into Go struct field ConfigMap.data of type string" in status["message"]


@source(CREATE)
async def test_kind_and_version_may_be_left_out(api):
    """The path says what it is; the answer says it too."""
    made = await api.create(CONFIG_MAPS, {"metadata": {"name": "m"}})
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


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


@source(CORE)
async def test_defaults_of_services(api):
    """ClusterIP, TCP, the target's port is the port; the address is given."""
    spec = (await api.create(SERVICES, service()))["spec"]
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert (spec["type"], spec["sessionAffinity"]) == ("ClusterIP", "None")
    assert spec["internalTrafficPolicy"] == "Cluster"
    assert spec["ipFamilyPolicy"] == "SingleStack"
    assert spec["clusterIPs"] == [spec["clusterIP"]]


@source("pkg/registry/core/service/storage/alloc.go")
async def test_a_headless_service_has_no_address(api):
    """clusterIP None is kept."""
    spec = (await api.create(SERVICES, service(clusterIP="None")))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


@source("pkg/registry/core/service/storage/alloc.go")
async def test_an_external_name_has_no_address(api):
    """Nothing is allocated for it."""
    made = await api.create(SERVICES, {**meta("s"), "spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert "clusterIP" not in made["spec"]


@source("pkg/registry/core/service/ipallocator/controller/repairip.go")
async def test_two_services_have_two_addresses(api):
    """And an address that is taken cannot be asked for."""
    one = await api.create(SERVICES, service("one"))
    two = await api.create(SERVICES, service("two"))
    assert one["spec"]["clusterIP"] != two["spec"]["clusterIP"]
    wanted = service("three", clusterIP=one["spec"]["clusterIP"])
    status = await api.create(SERVICES, wanted).refused(422, "Invalid")
    assert "provided IP is already allocated" in status["message"]


@source("pkg/registry/core/service/portallocator/allocator.go")
async def test_a_node_port_is_given(api):
    """In the range of the cluster (30000-32767 unless configured)."""
    spec = (await api.create(SERVICES, service(type="NodePort")))["spec"]
    assert spec["ports"][0]["nodePort"] > 0
    assert spec["externalTrafficPolicy"] == "Cluster"


@source(APPS)
async def test_defaults_of_deployments(api):
    """Rolling updates by quarters, ten old revisions, ten minutes to make progress."""
    spec = (await api.create(DEPLOYMENTS, workload("d", paused=True, replicas=None)))["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)


@source(APPS)
async def test_a_recreating_deployment_has_no_rolling_update(api):
    """Its strategy has only a type."""
    made = await api.create(DEPLOYMENTS, workload("d", strategy={"type": "Recreate"}))
    assert made["spec"]["strategy"] == {"type": "Recreate"}


@source(APPS)
async def test_defaults_of_stateful_sets(api):
    """One after the other, from the last to the first; claims are kept."""
    spec = (await api.create(STATEFUL_SETS, workload("s")))["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


@source(APPS)
async def test_defaults_of_daemon_sets(api):
    """One node at a time, without surge."""
    made = await api.create(DAEMON_SETS, workload("d", replicas=None, template=_nowhere("d")))
    assert made["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }


def _nowhere(app):
    spec = {"containers": [dict(CONTAINER)], "nodeSelector": {"conformance": "nowhere"}}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


@source("pkg/apis/batch/v1/defaults.go")
async def test_defaults_of_jobs(api):
    """One pod once, six tries more."""
    spec = (await api.create(JOBS, job("j")))["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["podReplacementPolicy"]) == ("NonIndexed", "TerminatingOrFailed")


@source("pkg/registry/batch/job/strategy.go")
async def test_a_job_selects_by_its_uid(api):
    """Selector and labels of the template are made by the server."""
    made = await api.create(JOBS, job("j"))
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }


@source("pkg/apis/batch/v1/defaults.go")
async def test_defaults_of_cron_jobs(api):
    """Runs may overlap; three successes and one failure are kept."""
    body = {**meta("c"), "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job("x")["spec"]}, "suspend": True}}
    spec = (await api.create(CRON_JOBS, body))["spec"]
    assert spec["concurrencyPolicy"] == "Allow"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)


@source(CORE)
async def test_defaults_of_claims(api):
    """A file system, Pending, held by the finalizer that protects claims in use."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    made = await api.create(CLAIMS, {**meta("c"), "spec": spec})
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["status"] == {"phase": "Pending"}
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


@source(CORE)
async def test_defaults_of_volumes_of_the_cluster(api):
    """What is made by hand is retained."""
    name = unique("pv")
    made = await api.create(VOLUMES, {**meta(name), "spec": dict(VOLUME)})
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    await api.patch(VOLUMES, name, {"metadata": {"finalizers": None}})


@source("pkg/apis/storage/v1/defaults.go")
async def test_defaults_of_storage_classes(api):
    """Delete, and bind at once."""
    made = await api.create(STORAGE_CLASSES, {**meta(unique("sc")), "provisioner": "example.com/x"})
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")


@source("pkg/apis/scheduling/v1/defaults.go")
async def test_defaults_of_priority_classes(api):
    """They preempt."""
    made = await api.create(PRIORITY_CLASSES, {**meta(unique("pc")), "value": 7})
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    assert "globalDefault" not in made


@source("pkg/registry/core/namespace/strategy.go")
async def test_a_new_namespace(api):
    """Active, with the finalizer of the namespace controller and a label of its own name."""
    name = unique("ns")
    made = await api.create(NAMESPACES, meta(name))
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}


@source("pkg/registry/core/secret/strategy.go")
async def test_text_in_secrets_is_write_only(api):
    """stringData becomes data, over what is there, and is not shown."""
    body = {**meta("s"), "data": {"a": b64("1"), "b": b64("2")}, "stringData": {"a": "3"}}
    made = await api.create(SECRETS, body)
    assert made["data"] == {"a": b64("3"), "b": b64("2")}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


@source("pkg/apis/core/validation/validation.go")
async def test_typed_secrets_have_their_keys(api):
    """A TLS secret has a certificate and a key."""
    status = await api.create(SECRETS, {**meta("s"), "type": "kubernetes.io/tls", "data": {}}).refused(422, "Invalid")
    assert {cause["field"] for cause in status["details"]["causes"]} == {"data[tls.crt]", "data[tls.key]"}


@source("pkg/apis/networking/v1/defaults.go")
async def test_the_types_of_a_policy_follow_its_rules(api):
    """Ingress always, Egress if there are egress rules."""
    made = await api.create(POLICIES, {**meta("n"), "spec": {"podSelector": {}, "egress": [{}]}})
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]


@source("pkg/apis/autoscaling/v2/defaults.go")
async def test_defaults_of_autoscalers(api):
    """One replica at least, and 80 % of the CPU requested."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    made = await api.create(SCALERS, {**meta("h"), "spec": {"scaleTargetRef": target, "maxReplicas": 3}})
    assert made["spec"]["minReplicas"] == 1
    assert made["spec"]["metrics"][0]["resource"] == {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80},
    }


@source("pkg/registry/policy/poddisruptionbudget/strategy.go")
async def test_a_new_budget_allows_nothing(api):
    """Its status is what the controller has not yet written."""
    selector = {"matchLabels": {"app": "x"}}
    body = {**meta("b"), "spec": {"minAvailable": 1, "selector": selector}, "status": {"disruptionsAllowed": 9}}
    made = await api.create(BUDGETS, body)
    assert made["status"] == {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


@source("pkg/registry/apps/deployment/strategy.go")
async def test_the_first_generation_is_one(api):
    """For kinds that count generations."""
    assert (await api.create(DEPLOYMENTS, workload("d", paused=True)))["metadata"]["generation"] == 1


@source("pkg/registry/core/configmap/strategy.go")
async def test_some_kinds_count_no_generations(api):
    """ConfigMaps have none."""
    assert "generation" not in (await api.create(CONFIG_MAPS, config_map()))["metadata"]


@source("pkg/registry/core/pod/strategy.go")
async def test_pods_count_generations(api):
    """Since 1.35 a pod's generation is set, and its status tells which one was seen (KEP-5067)."""
    assert (await api.create(PODS, pod()))["metadata"]["generation"] == 1


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
