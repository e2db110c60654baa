"""What a user who lacks a right is told, from the words of kube-apiserver 1.36."""

import pytest

from lastcall.adapters.kube.refusals import explain_refusal
from lastcall.errors import ApiNotPermitted
from lastcall.model.viewer_access import VIEWED
from lastcall_lab.simulation.recorded_cluster.kubectl_items import KINDS

VIEWER = "permit it by: kubectl create clusterrolebinding lastcall-viewer --clusterrole=lastcall-viewer"
VIEW = "permit it by: kubectl create rolebinding lastcall-viewer --clusterrole=view"

DRAINER_THERE = (
    "permit it by: kubectl create rolebinding lastcall-drainer --namespace=lastcall-drains --role=lastcall-drainer "
    "--user=jane"
)
DRAINER = (
    "permit it by: kubectl create clusterrolebinding lastcall-drainer --clusterrole=lastcall-drainer --user=jane; "
    "lastcall manifests agent has that role"
)
REQUESTER = (
    "permit it by: kubectl create clusterrole drain-eviction-requests --verb=create,get,list,watch,patch "
    "--resource=evictionrequests.lifecycle.k8s.io,evictions.lifecycle.k8s.io; kubectl create clusterrolebinding "
    "drain-eviction-requests --clusterrole=drain-eviction-requests --serviceaccount=ops:look"
)


def refusal(user, verb, resource, group="", namespace=""):
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    return f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (refusal("jane", "list", "nodes"), f"{VIEWER} --user=jane"),
        (
            refusal("system:serviceaccount:ops:look", "get", "nodeshutdowns", "lastcall.dev"),
            f"{VIEWER} --serviceaccount=ops:look",
        ),
        (
            refusal("jane", "list", "configmaps", namespace="lastcall-system"),
            f"{VIEW} --user=jane --namespace=lastcall-system",
        ),
        (refusal("jane", "patch", "nodes"), ""),
        (refusal("jane", "list", "secrets"), ""),
        ("Unauthorized", ""),
    ],
)
def test_the_role_that_helps_is_named(said, hint):
    assert explain_refusal(ApiNotPermitted(said)) == (f"{said}; {hint}" if hint else said)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            refusal("jane", "list", "nodes"),
            DRAINER,
        ),
        (
            refusal("system:serviceaccount:ops:look", "list", "evictions", "lifecycle.k8s.io"),
            REQUESTER,
        ),
        (
            refusal("jane", "get", "leases", "coordination.k8s.io", namespace="lastcall-drains"),
            DRAINER_THERE,
        ),
        (refusal("jane", "list", "secrets"), ""),
    ],
)
def test_whoever_drains_is_told_what_a_drain_needs(said, hint):
    assert explain_refusal(ApiNotPermitted(said), drains=True) == (f"{said}; {hint}" if hint else said)


def test_the_viewer_may_read_all_that_simulate_reads_and_nothing_secret():
    permitted = {(group, resource) for group, resources in VIEWED.items() for resource in resources}
    assert {(kind.group, kind.plural) for kind in KINDS.values()} <= permitted
    assert not permitted & {("", "secrets"), ("", "configmaps")}
