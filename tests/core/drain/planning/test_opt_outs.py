"""What other tools were told to leave alone holds a drain."""

import pytest
from support.drain.objects import owned, read_node

from lastcall.drain.planning.opt_outs import node_opt_outs, pod_opt_outs

KARPENTER = "karpenter.sh/do-not-disrupt"
AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DESCHEDULER = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
CLUSTER_API = "cluster.x-k8s.io/drain"

HELD = [
    ({"annotations": {KARPENTER: "true"}}, [KARPENTER]),
    ({"annotations": {AUTOSCALER: "false"}}, [AUTOSCALER]),
    ({"annotations": {DESCHEDULER: ""}}, [DESCHEDULER]),
    ({"annotations": {DESCHEDULER: "false"}}, [DESCHEDULER]),  # the descheduler looks at its presence alone
    ({"labels": {CLUSTER_API: "wait-completed"}}, [CLUSTER_API]),
    ({"labels": {CLUSTER_API: "WaitCompleted"}}, [CLUSTER_API]),
    ({"annotations": {AUTOSCALER: "false", KARPENTER: "true"}}, [KARPENTER, AUTOSCALER]),
]

FREE = [
    {},
    {"annotations": {KARPENTER: "false"}},
    {"annotations": {KARPENTER: "True"}},
    {"annotations": {AUTOSCALER: "true"}},
    {"labels": {KARPENTER: "true", AUTOSCALER: "false"}},
    {"labels": {CLUSTER_API: "wait"}},
    {"labels": {CLUSTER_API: "wait--completed"}},
    {"annotations": {CLUSTER_API: "wait-completed"}},
    {"annotations": {"descheduler.alpha.kubernetes.io/evict": "false"}},
    {"annotations": {"descheduler.alpha.kubernetes.io/request-evict-only": ""}},
    {"annotations": {KARPENTER: "true"}, "phase": "Succeeded"},
    {"annotations": {AUTOSCALER: "false"}, "phase": "Failed"},
    {"annotations": {AUTOSCALER: "false"}, "deletion": "2026-01-01T00:00:00Z"},
    {"labels": {CLUSTER_API: "wait-completed"}, "phase": "Succeeded"},
]


@pytest.mark.parametrize(("pod", "marks"), HELD)
def test_a_pod_is_held_and_the_reason_names_what_holds_it(pod, marks):
    found = list(pod_opt_outs(owned(**pod)))
    assert [one.mark for one in found] == marks
    assert all(one.mark in one.why for one in found)


@pytest.mark.parametrize("pod", FREE)
def test_a_pod_is_not_held(pod):
    assert list(pod_opt_outs(owned(**pod))) == []


def test_a_node_is_held():
    assert [one.mark for one in node_opt_outs(read_node(annotations={KARPENTER: "true"}))] == [KARPENTER]


@pytest.mark.parametrize("annotations", [{}, {KARPENTER: "false"}, {AUTOSCALER: "false"}])
def test_a_node_is_not_held(annotations):
    assert list(node_opt_outs(read_node(annotations=annotations))) == []
