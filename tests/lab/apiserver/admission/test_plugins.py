"""The admission plugins that the lab's API server always has."""

import pytest
from support.lab.pod_requests import MERGE, PODS, kubelet, pod, with_api

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TOLERATED = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


# -- namespaces --------------------------------------------------------------------------------------------------------


@with_api
async def test_the_namespaces_and_classes_of_every_cluster(api):
    found = await api.good("GET", "/api/v1/namespaces")
    names = [item["metadata"]["name"] for item in found["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    found = await api.good("GET", CLASSES)
    assert {one["metadata"]["name"]: one["value"] for one in found["items"]} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }


@with_api
async def test_nothing_is_made_in_a_namespace_that_is_not_there(api):
    config = {"metadata": {"name": "c"}}
    assert await api.refused("POST", "/api/v1/namespaces/nowhere/configmaps", config) == (
        404,
        "NotFound",
        'namespaces "nowhere" not found',
    )


@with_api
async def test_some_namespaces_stay(api):
    for name in ("default", "kube-system", "kube-public"):
        code, _, message = await api.refused("DELETE", f"/api/v1/namespaces/{name}")
        assert (code, message) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')
    await api.good("DELETE", "/api/v1/namespaces/kube-node-lease")


# -- service accounts --------------------------------------------------------------------------------------------------


@with_api
async def test_a_token_is_mounted_into_every_container_that_has_none(api):
    await api.good("PATCH", f"{PODS[:-4]}serviceaccounts/default", {"automountServiceAccountToken": True}, media=MERGE)
    mount = {"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    own = {"name": "own", "image": "i", "volumeMounts": [mount]}
    wanted = pod(containers=[{"name": "c", "image": "i"}, own], volumes=[{"name": "v"}])
    spec = (await api.good("POST", PODS, wanted))["spec"]
    assert [volume["name"] for volume in spec["volumes"]][0] == "v"
    token = spec["volumes"][1]
    assert token["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in token["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    assert [one["name"] for one in spec["containers"][0]["volumeMounts"]] == [token["name"]]
    assert [one["name"] for one in spec["containers"][1]["volumeMounts"]] == ["v"]


@with_api
async def test_pods_pull_with_the_secrets_of_their_account(api):
    account = {"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "s"}]}
    await api.good("POST", f"{PODS[:-4]}serviceaccounts", account)
    spec = (await api.good("POST", PODS, pod(serviceAccountName="robot", automountServiceAccountToken=False)))["spec"]
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    assert spec["serviceAccount"] == "robot"


@with_api
async def test_a_default_account_may_come_a_moment_later(api):
    await api.good("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    began = api.clock.boottime()
    code, _, message = await api.refused("POST", "/api/v1/namespaces/new/pods", pod())
    assert (code, message) == (
        403,
        'pods "p" is forbidden: error looking up service account new/default: serviceaccount "default" not found',
    )
    assert 0.9 <= api.clock.boottime() - began <= 1.8
    await api.account("new")
    await api.good("POST", "/api/v1/namespaces/new/pods", pod())


# -- priorities --------------------------------------------------------------------------------------------------------


@with_api
async def test_the_default_class(api):
    await api.good("POST", CLASSES, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    spec = (await api.good("POST", PODS, pod()))["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (
        "usual",
        7,
        "PreemptLowerPriority",
    )
    code, _, message = await api.refused(
        "POST", CLASSES, {"metadata": {"name": "other"}, "value": 8, "globalDefault": True}
    )
    assert code == 403
    assert message.endswith("PriorityClass usual is already marked as default. Only one default can exist")


@with_api
async def test_system_classes_and_classes_that_are_not_there(api):
    spec = (await api.good("POST", PODS, pod(priorityClassName="system-node-critical")))["spec"]
    assert spec["priority"] == 2_000_001_000
    code, _, message = await api.refused("POST", PODS, pod("q", priorityClassName="nope"))
    assert (code, message) == (403, 'pods "q" is forbidden: no PriorityClass with name nope was found')


@with_api
async def test_a_change_that_leaves_the_priority_out_keeps_it(api):
    obj = await api.good("POST", PODS, pod(priorityClassName="system-node-critical"))
    del obj["spec"]["priority"]
    obj["metadata"]["labels"] = {"a": "b"}
    assert (await api.good("PUT", f"{PODS}/p", obj))["spec"]["priority"] == 2_000_001_000


# -- nodes in trouble --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], TOLERATED),
        ([{"key": TOLERATED[0], "operator": "Exists"}], TOLERATED[1:]),
        ([{"key": TOLERATED[0], "operator": "Exists", "effect": "NoSchedule"}], TOLERATED),
        ([{"operator": "Exists", "effect": "NoExecute"}], []),
    ],
)
def test_five_minutes_are_tolerated(given, added):
    @with_api
    async def scenario(api):
        tolerations = (await api.good("POST", PODS, pod(tolerations=given)))["spec"]["tolerations"]
        assert tolerations[: len(given)] == given
        assert [(one["key"], one["tolerationSeconds"]) for one in tolerations[len(given) :]] == [
            (key, 300) for key in added
        ]

    scenario()


@with_api
async def test_a_new_node_is_not_ready_once(api):
    await api.good("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    taint = {"key": TOLERATED[0], "effect": "NoSchedule"}
    node = await api.good("GET", "/api/v1/nodes/n1")
    assert node["spec"]["taints"] == [taint]
    tainted = {"metadata": {"name": "n2"}, "spec": {"taints": [taint]}}
    assert (await api.good("POST", "/api/v1/nodes", tainted))["spec"]["taints"] == [taint]


# -- kubelets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("example.com/a", True),
        ("kubernetes.io/hostname", True),
        ("node.kubernetes.io/x", True),
        ("kubelet.kubernetes.io/x", True),
        ("topology.kubernetes.io/zone", True),
        ("topology.kubernetes.io/rack", False),
        ("node-role.kubernetes.io/worker", False),
        ("node-restriction.kubernetes.io/a", False),
        ("x.k8s.io/a", False),
    ],
)
def test_a_kubelet_labels_its_node(label, allowed):
    @with_api
    async def scenario(api):
        node = {"metadata": {"name": "n1", "labels": {label: "v"}}}
        code, answer = await api.ask("POST", "/api/v1/nodes", node, user=kubelet("n1"))
        assert code == (201 if allowed else 403), answer
        if not allowed:
            assert answer["message"].endswith(f"is not allowed to set the following labels: {label}")

    scenario()
