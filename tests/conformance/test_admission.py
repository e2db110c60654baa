"""Admission that is built in: priorities, tolerations, service accounts, taints."""

import pytest
from support.conformance.api_client import unique
from support.conformance.objects import CONTAINER, meta, pod

from lastcall.adapters.kube.resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, dict_resource

source = pytest.mark.source
PRIORITY = "plugin/pkg/admission/priority/admission.go"
TOLERATIONS = "plugin/pkg/admission/defaulttolerationseconds/admission.go"
ACCOUNTS = "plugin/pkg/admission/serviceaccount/admission.go"
SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
BOTH = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


async def known(api, name):
    """Waits until the admission knows a priority class."""

    async def admitted():
        return (await api.create(PODS, pod(unique("x"), priorityClassName=name), dryRun="All").reply()).status == 201

    await api.until(admitted)


@source(PRIORITY)
async def test_a_priority_is_resolved(api):
    """From the class to the number, with its preemption."""
    name = unique("pc")
    await api.create(PRIORITY_CLASSES, {**meta(name), "value": 77, "preemptionPolicy": "Never"})
    await known(api, name)
    spec = (await api.create(PODS, pod(priorityClassName=name)))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (77, "Never")


@source(PRIORITY)
async def test_a_priority_class_that_is_not_there(api):
    """403."""
    status = await api.create(PODS, pod(priorityClassName="no-such-class")).refused(403, "Forbidden")
    assert "no PriorityClass with name no-such-class was found" in status["message"]


@source(PRIORITY)
@pytest.mark.parametrize(
    ("name", "value"), [("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000)]
)
async def test_the_system_has_two_classes(api, name, value):
    """They are there from the beginning."""
    assert (await api.get(PRIORITY_CLASSES, name))["value"] == value
    assert (await api.create(PODS, pod(priorityClassName=name)))["spec"]["priority"] == value


@source(PRIORITY)
async def test_a_priority_that_is_not_the_classs(api):
    """403: the number is computed."""
    status = await api.create(PODS, pod(priorityClassName="system-node-critical", priority=5)).refused(403, "Forbidden")
    assert "the integer value of priority (5) must not be provided in pod spec" in status["message"]


@source("pkg/apis/scheduling/validation/validation.go")
async def test_high_values_are_the_systems(api):
    """Above a thousand million."""
    status = await api.create(PRIORITY_CLASSES, {**meta(unique("pc")), "value": 1000000001}).refused(422, "Invalid")
    assert "maximum allowed value of a user defined priority is 1000000000" in status["message"]


@source("pkg/apis/scheduling/validation/validation.go")
async def test_the_prefix_system_is_the_systems(api):
    """Names beginning with system- are refused."""
    status = await api.create(PRIORITY_CLASSES, {**meta("system-mine"), "value": 1}).refused(422, "Invalid")
    assert "system-" in status["message"]


@source("pkg/registry/scheduling/priorityclass/storage/storage.go")
async def test_the_systems_classes_stay(api):
    """They cannot be deleted."""
    status = await api.delete(PRIORITY_CLASSES, "system-node-critical").refused(403, "Forbidden")
    assert "this is a system priority class and cannot be deleted" in status["message"]


@source(TOLERATIONS)
async def test_a_pod_tolerates_a_lost_node_for_five_minutes(api):
    """Two tolerations of 300 s, unless it says otherwise."""
    made = await api.create(PODS, pod())
    assert made["spec"]["tolerations"] == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in BOTH
    ]


@source(TOLERATIONS)
async def test_a_pods_own_toleration_counts(api):
    """Only what is missing is added."""
    own = {"key": BOTH[1], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    made = await api.create(PODS, pod(tolerations=[own]))
    found = {one["key"]: one["tolerationSeconds"] for one in made["spec"]["tolerations"]}
    assert found == {BOTH[0]: 300, BOTH[1]: 5}


@source(TOLERATIONS)
async def test_who_tolerates_everything_needs_nothing_more(api):
    """As DaemonSets of the system do."""
    made = await api.create(PODS, pod(tolerations=[{"operator": "Exists"}]))
    assert made["spec"]["tolerations"] == [{"operator": "Exists"}]


@source(ACCOUNTS)
async def test_a_service_account_that_is_not_there(api):
    """403."""
    status = await api.create(PODS, pod(serviceAccountName="nobody")).refused(403, "Forbidden")
    assert (
        f'error looking up service account {api.namespace}/nobody: serviceaccount "nobody" not found'
        in (status["message"])
    )


@source(ACCOUNTS)
async def test_a_token_is_mounted(api):
    """A projected volume with token, certificate and namespace (some clusters add to it), in every container."""
    spec = (await api.create(PODS, pod(automountServiceAccountToken=None)))["spec"]
    (volume,) = spec["volumes"]
    sources = [next(iter(one)) for one in volume["projected"]["sources"]]
    assert sources[:3] == ["serviceAccountToken", "configMap", "downwardAPI"]
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount == {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }


@source(ACCOUNTS)
async def test_a_token_is_not_mounted_if_not_wanted(api):
    """automountServiceAccountToken of the pod goes before that of the account."""
    await api.create(SERVICE_ACCOUNTS, {**meta("quiet"), "automountServiceAccountToken": False})
    quiet = await api.create(PODS, pod("a", serviceAccountName="quiet", automountServiceAccountToken=None))
    assert "volumes" not in quiet["spec"]
    loud = await api.create(PODS, pod("b", serviceAccountName="quiet", automountServiceAccountToken=True))
    assert loud["spec"]["volumes"]


@source(ACCOUNTS)
async def test_pull_secrets_of_the_account(api):
    """A pod has them if it has none of its own."""
    await api.create(SERVICE_ACCOUNTS, {**meta("puller"), "imagePullSecrets": [{"name": "s"}]})
    made = await api.create(PODS, pod(serviceAccountName="puller"))
    assert made["spec"]["imagePullSecrets"] == [{"name": "s"}]


@source("plugin/pkg/admission/nodetaint/admission.go")
async def test_a_new_node_is_not_ready(api):
    """It has the taint until its conditions are known."""
    made = await api.create(NODES, meta(unique("node")))
    assert made["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


@source("plugin/pkg/admission/serviceaccount/admission.go")
async def test_mirror_pods_have_no_account(api):
    """A kubelet's pod of a file uses none of the API's objects."""
    annotations = {"kubernetes.io/config.mirror": "x"}
    body = pod(metadata={"annotations": annotations}, nodeName="n", serviceAccountName="default")
    reply = await api.create(PODS, body).reply()
    assert reply.status in (400, 403)


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go")
@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_are_for_ever(api, name):
    """403."""
    status = await api.delete(NAMESPACES, name).refused(403, "Forbidden")
    assert "this namespace may not be deleted" in status["message"]


@source("pkg/apis/core/v1/defaults.go")
async def test_a_class_that_is_the_default(api):
    """Without any global default the priority is 0; nothing is named."""
    made = await api.create(PODS, pod(containers=[dict(CONTAINER)]))
    if made["spec"].get("priorityClassName"):
        pytest.skip("this cluster has a global default class of its own")
    assert made["spec"]["priority"] == 0
