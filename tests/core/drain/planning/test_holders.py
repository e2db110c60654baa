"""What holds a drain beside budgets: opt-outs, nodes that are gone, finalizers, guards, webhooks."""

import pytest
from support.drain.objects import node_object, owned_object, pod_object
from support.drain.plans import blocked_of, plan_of

KARPENTER = "karpenter.sh/do-not-disrupt"
POD = {"namespace": "n", "name": "p"}


def holders(*objects, **more):
    return [(*one["by"].values(), [pod["name"] for pod in one["pods"]]) for one in blocked_of(*objects, **more)]


def test_an_opt_out_of_a_pod_is_held_by_the_pod():
    (one,) = blocked_of(owned_object(annotations={KARPENTER: "true"}))
    assert one == {
        "by": {"kind": "Pod", **POD},
        "pods": [POD],
        "why": f"annotation {KARPENTER}: true keeps Karpenter from disrupting the pod",
        "mend": "--ignore-opt-outs",
    }


def test_an_opt_out_of_a_node_holds_all_its_pods_that_go():
    node = node_object("n1", annotations={KARPENTER: "true"})
    mirror = pod_object("m", annotations={"kubernetes.io/config.mirror": "x"})
    assert holders(node, owned_object("b"), owned_object("a"), owned_object("c", node="n2"), mirror) == [
        ("Node", "", "n1", ["a", "b"])
    ]
    assert holders(node) == [("Node", "", "n1", [])]


def test_opt_outs_can_be_ignored():
    objects = [
        node_object("n1", annotations={KARPENTER: "true"}),
        owned_object("a", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
        owned_object("b", labels={"cluster.x-k8s.io/drain": "wait-completed"}),
        owned_object("c", labels={"cluster.x-k8s.io/drain": "skip"}),
    ]
    assert [one[:3] for one in holders(*objects)] == [("Node", "", "n1"), ("Pod", "n", "a"), ("Pod", "n", "b")]
    plan = plan_of(*objects, ignore_opt_outs=True)
    assert (plan["blocked"], [one["name"] for one in plan["skip"]]) == ([], ["c"])


def test_several_opt_outs_of_one_pod_are_one_entry_that_names_all():
    marks = {KARPENTER: "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    (one,) = blocked_of(owned_object(annotations=marks))
    assert all(mark in one["why"] for mark in marks)


@pytest.mark.parametrize(
    "node",
    [
        node_object("n1", ready="False"),
        node_object("n1", ready="Unknown"),
        node_object("n1", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]),
        node_object("n1", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]),
        node_object("n1", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]),
    ],
)
def test_a_node_that_is_gone_is_handed_to_failover(node):
    (one,) = blocked_of(node, owned_object(), owned_object("done", phase="Succeeded"))
    assert (one["by"], one["pods"]) == ({"kind": "Node", "namespace": "", "name": "n1"}, [POD])
    assert "lastcall failover explain node/n1" in one["mend"]


@pytest.mark.parametrize(
    "node", [node_object("n1"), node_object("n1", ready=None), node_object("n1", unschedulable=True)]
)
def test_a_node_that_does_not_say_otherwise_is_there(node):
    assert blocked_of(node, owned_object()) == []


def test_a_node_that_is_gone_without_pods_holds_nothing():
    assert blocked_of(node_object("n1", ready="Unknown")) == []


def test_a_finalizer_keeps_the_object():
    (one,) = blocked_of(owned_object(finalizers=["batch.kubernetes.io/job-tracking", "acme.io/volume"]))
    assert one["by"] == {"kind": "Pod", **POD}
    assert "acme.io/volume" in one["why"]
    assert "job-tracking" not in one["why"]
    assert "acme.io/volume" in one["mend"]


@pytest.mark.parametrize("name", ["batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan"])
def test_finalizers_of_kubernetes_hold_nothing(name):
    assert blocked_of(owned_object(finalizers=[name])) == []


# -- guards --------------------------------------------------------------------------------------------------------------


def policy(state=None, message="", provider=None, **spec):
    pods = (
        [{"name": "p", "uid": "uid-n-p", "state": state, "message": message, "since": "2026-01-01T11:00:00Z"}]
        if state
        else []
    )
    return {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "GuardPolicy",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {"provider": provider or {"redis": {}}, "selector": {}, **spec},
        "status": {"pods": pods},
    }


@pytest.mark.parametrize("state", ["Stalled", "Unhealthy"])
def test_a_guard_that_makes_no_progress_holds(state):
    (one,) = blocked_of(owned_object(), policy(state, "replica redis-1 is away"))
    assert (one["by"], one["pods"]) == ({"kind": "GuardPolicy", "namespace": "n", "name": "g"}, [POD])
    assert one["why"].endswith("replica redis-1 is away")
    assert "kubectl lastcall guard status p -n n" in one["mend"]


def test_what_the_guard_says_is_what_is_told():
    assert "makes no progress" in blocked_of(owned_object(), policy("Stalled"))[0]["why"]
    assert "short of members" in blocked_of(owned_object(), policy("Unhealthy"))[0]["why"]


def test_a_namespace_that_is_being_deleted_is_not_guarded():
    labels = {"lastcall.dev/guard-enabled": "true"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}}
    assert len(blocked_of(owned_object(), policy("Stalled"), space)) == 1
    assert blocked_of(owned_object(), policy("Stalled"), {**space, "status": {"phase": "Terminating"}}) == []


def test_no_guard_is_asked_on_a_node_that_is_out_of_service():
    tainted = node_object("n1", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
    assert [one["by"]["kind"] for one in blocked_of(tainted, owned_object(), policy("Stalled"))] == ["Node"]
    other = node_object("n1", taints=[{"key": "a", "effect": "NoExecute"}])
    assert [one["by"]["kind"] for one in blocked_of(other, owned_object(), policy("Stalled"))] == ["GuardPolicy"]


BYPASS = {"lastcall.dev/guard-bypass-until": "2026-01-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("pod", "guard"),
    [
        (owned_object(), policy()),
        (owned_object(), policy("Preparing")),
        (owned_object(), policy("Ready")),
        (owned_object(), policy("Stalled", selector={"matchLabels": {"app": "other"}})),
        (owned_object(), policy("Stalled", holdLimit="30m", onLimit="Allow")),
        (owned_object(), policy("Stalled", holdLimit="1h", onLimit="Allow")),  # exactly so long
        (owned_object(annotations=BYPASS), policy("Stalled")),
        (owned_object(phase="Succeeded"), policy("Stalled")),
        (owned_object(deletion="2026-01-01T11:00:00Z"), policy("Stalled")),
    ],
)
def test_a_guard_that_may_let_the_pod_go_does_not_hold(pod, guard):
    assert blocked_of(pod, guard) == []


def test_a_limit_that_is_not_over_lets_nothing_go():
    assert len(blocked_of(owned_object(), policy("Stalled", holdLimit="2h", onLimit="Allow"))) == 1


def test_a_namespace_without_the_label_is_not_guarded():
    plain = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    labelled = {**plain, "metadata": {"name": "n", "labels": {"lastcall.dev/guard-enabled": "true"}}}
    assert blocked_of(owned_object(), policy("Stalled"), plain) == []
    assert len(blocked_of(owned_object(), policy("Stalled"), labelled)) == 1


# -- webhooks ------------------------------------------------------------------------------------------------------------


EVICTIONS = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/eviction"]}
DELETIONS = {**EVICTIONS, "operations": ["DELETE"], "resources": ["pods"]}


def webhook(rule=EVICTIONS, service="hook", **more):
    one = {"name": "check.acme.io", "rules": [rule], "failurePolicy": "Fail", **more}
    one["clientConfig"] = {"service": {"namespace": "acme", "name": service}} if service else {"url": "https://acme.io"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "acme"},
        "webhooks": [one],
    }


def endpoints(service="other", *ready):
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "s", "namespace": "acme", "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {} if one is None else {"ready": one}} for one in ready
        ],
    }


ASKED = [
    webhook(),
    webhook(DELETIONS),
    webhook({**EVICTIONS, "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}),
    webhook({**EVICTIONS, "resources": ["pods/*"]}),
    webhook(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "n"}}),
    webhook(DELETIONS, objectSelector={"matchLabels": {"app": "web"}}),
    webhook(matchConditions=[{"name": "x", "expression": "true"}]),
]

NOT_ASKED = [
    webhook(failurePolicy="Ignore"),
    webhook(service=""),
    webhook({**EVICTIONS, "operations": ["UPDATE"]}),
    webhook({**EVICTIONS, "apiGroups": ["apps"]}),
    webhook({**EVICTIONS, "resources": ["pods"]}),
    webhook({**EVICTIONS, "resources": ["*"]}),
    webhook({**DELETIONS, "resources": ["pods/status"]}),
    webhook({**EVICTIONS, "scope": "Cluster"}),
    webhook(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "other"}}),
    webhook(objectSelector={"matchLabels": {"app": "web"}}),  # an Eviction has no labels
    webhook(DELETIONS, objectSelector={"matchLabels": {"app": "db"}}),
]


@pytest.mark.parametrize("hook", ASKED)
def test_a_webhook_without_endpoints_holds(hook):
    (one,) = blocked_of(owned_object(labels={"app": "web"}), hook, endpoints())
    assert one["by"] == {"kind": "ValidatingWebhookConfiguration", "namespace": "", "name": "acme"}
    assert one["pods"] == [POD]
    assert "Service acme/hook has no ready endpoint" in one["why"]


@pytest.mark.parametrize("hook", NOT_ASKED)
def test_a_webhook_that_is_not_asked_does_not_hold(hook):
    assert blocked_of(owned_object(labels={"app": "web"}), hook, endpoints()) == []


@pytest.mark.parametrize(
    ("slices", "held"),
    [
        ([], False),
        ([endpoints("hook", True)], False),
        ([endpoints("hook", None)], False),
        ([endpoints("hook", False, True)], False),
        ([endpoints("hook", False)], True),
        ([endpoints("hook")], True),
    ],
)
def test_endpoints_decide(slices, held):
    assert bool(blocked_of(owned_object(), webhook(), *slices)) is held


def test_deletions_are_not_asked_about_as_evictions():
    assert blocked_of(owned_object(), webhook(), endpoints(), disable_eviction=True) == []
    assert len(blocked_of(owned_object(), webhook(DELETIONS), endpoints(), disable_eviction=True)) == 1
