"""Owners, custom resources and refusals as the unmodified kubectl shows them."""

import re

import pytest
from support.kube.kubectl import kubectl, lab, workload  # noqa: F401  (fixtures)
from support.lab.custom_definitions import custom, definition, owned, owner

pytestmark = pytest.mark.timeout(180)


def test_what_a_custom_resource_owns_goes_with_it_and_both_with_their_namespace(lab):  # noqa: F811
    kubectl = lab.kubectl("shop")  # noqa: F811
    kubectl("create -f -", given=definition())
    kubectl("wait --for=condition=Established crd/widgets.x.example.com --timeout=60s")
    for name in ("one", "two"):
        kubectl("create -f -", given=custom(name))
        mine = owned(f"of-{name}", owner(kubectl.json(f"get widget {name}"), block=True))
        kubectl("create -f -", given={"apiVersion": "v1", "kind": "ConfigMap", **mine})
    assert (
        kubectl("delete widget one --cascade=foreground") == 'widget.x.example.com "one" deleted from shop namespace\n'
    )
    assert kubectl.fails("get widget one").startswith("Error from server (NotFound)")
    kubectl.until("get cm -o name", lambda said: "of-one" not in said and "of-two" in said)
    kubectl("delete widget two --cascade=orphan")
    assert "ownerReferences" not in kubectl.json("get cm of-two")["metadata"]
    kubectl("create -f -", given=custom("three"))
    assert kubectl("delete namespace shop --timeout=60s") == 'namespace "shop" deleted\n'
    assert lab.stored("widgets.x.example.com", "shop", "three") is None
    assert kubectl("delete crd widgets.x.example.com --timeout=60s")


def test_that_pods_are_refused_is_described(kubectl):  # noqa: F811
    kubectl("create -f -", given=workload("Deployment", "web", pod_spec={"serviceAccountName": "nobody"}))
    kubectl("wait deploy/web --for=condition=ReplicaFailure --timeout=60s")
    said = kubectl("describe deploy web")
    assert re.search(r"ReplicaFailure +True +FailedCreate", said)
    said = kubectl.until("describe rs -l app=web", lambda said: "FailedCreate " in said)
    assert re.search(r"ReplicaFailure +True +FailedCreate", said)
    why = r'Error creating: pods "web-\w+-" is forbidden: error looking up service account \S+: serviceaccount "nobody" not found'
    assert re.search(rf"Warning +FailedCreate +.* replicaset-controller +{why}", said)
    kubectl("create serviceaccount nobody")
    kubectl("rollout status deploy/web --timeout=60s")
    assert "ReplicaFailure" not in kubectl("describe deploy web")
