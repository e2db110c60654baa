"""PodDisruptionBudgets that hold a drain: which, why, and what mends it."""

import pytest
from support.drain.objects import owned_object, owner_reference, pod_object
from support.drain.plans import blocked_of, budget_object, notes_of, plan_of, workload_object

WEB = {"app": "web"}


def web(name="p", **more):
    return owned_object(name, **{"labels": WEB, **more})


def holders(*objects, **more):
    return [
        (one["by"]["kind"], one["by"]["name"], [pod["name"] for pod in one["pods"]])
        for one in blocked_of(*objects, **more)
    ]


def beta(budget):
    return {**budget, "apiVersion": "policy/v1beta1"}


FREE = {
    "another namespace": [web(), budget_object(namespace="other")],
    "another label": [web(labels={"app": "x"}), budget_object()],
    "no selector": [web(), {**budget_object(), "spec": {"minAvailable": 1}}],
    "an empty selector of policy/v1beta1, which covers nothing": [web(), beta(budget_object(selector={}))],
    "null selectors of policy/v1beta1": [web(), beta(budget_object(selector={"matchLabels": None}))],
    "a disruption is allowed": [web(), budget_object(allowed=1)],
    "one is allowed and three are covered": [web("a"), web("b"), web("c"), budget_object(allowed=1)],
    "finished": [web(phase="Succeeded"), budget_object()],
    "pending": [web(phase="Pending"), budget_object()],
    "terminating": [web(deletion="2026-01-01T11:00:00Z"), budget_object()],
    "unready and enough others": [web(ready=False), budget_object(healthy=2, desired=2, expected=3)],
    "unready and AlwaysAllow": [
        web(ready=False),
        budget_object(healthy=0, spec={"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
    ],
    "another node": [web(node="n2"), budget_object()],
    "a pod that stays": [
        pod_object(labels=WEB, owner=owner_reference("DaemonSet", "d")),
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}},
        budget_object(),
    ],
}


@pytest.mark.parametrize("name", FREE)
def test_no_budget_holds(name):
    assert holders(*FREE[name], ignore_daemonsets=True) == []


HELD = {
    "spent": ([web(), budget_object()], [("PodDisruptionBudget", "b", ["p"])]),
    "all pods that it covers": ([web("b"), web("a"), budget_object()], [("PodDisruptionBudget", "b", ["a", "b"])]),
    "an empty selector covers the whole namespace": (
        [web("a", labels={}), web("z", namespace="o", labels={}), budget_object(selector={})],
        [("PodDisruptionBudget", "b", ["a"])],
    ),
    "policy/v1beta1": ([web(), beta(budget_object())], [("PodDisruptionBudget", "b", ["p"])]),
    "an expression": (
        [web(), budget_object(selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]})],
        [("PodDisruptionBudget", "b", ["p"])],
    ),
    "stale": ([web(), budget_object(allowed=1, generation=3, observed=2)], [("PodDisruptionBudget", "b", ["p"])]),
    "never observed": ([web(), budget_object(allowed=1, observed=0)], [("PodDisruptionBudget", "b", ["p"])]),
    "several, of which one would do": (
        [web(), budget_object("b1", allowed=5), budget_object("b2", allowed=5)],
        [("PodDisruptionBudget", "b1", ["p"]), ("PodDisruptionBudget", "b2", ["p"])],
    ),
    "refused pods that a mend would evict": (
        [pod_object(labels=WEB), budget_object()],
        [("PodDisruptionBudget", "b", ["p"])],
    ),
    "alone and together": (
        [
            web("both", labels={"app": "web", "tier": "x"}),
            web("one"),
            budget_object("b1"),
            budget_object("b2", allowed=1, selector={"matchLabels": {"tier": "x"}}),
        ],
        [("PodDisruptionBudget", "b1", ["both", "one"]), ("PodDisruptionBudget", "b2", ["both"])],
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_budgets_hold(name):
    objects, expected = HELD[name]
    assert holders(*objects) == expected


@pytest.mark.parametrize("name", HELD)
def test_deletions_pass_budgets_by(name):
    assert holders(*HELD[name][0], disable_eviction=True) == []


def only(*objects, **more):
    (one,) = blocked_of(*objects, **more)
    return one["why"], one["mend"]


@pytest.mark.parametrize(
    ("spec", "numbers", "rule"),
    [
        ({"minAvailable": 1}, {}, "minAvailable 1 of 1 pod"),
        ({"minAvailable": "100%"}, {"healthy": 3, "desired": 3, "expected": 3}, "minAvailable 100% of 3 pods"),
        ({"minAvailable": 4}, {"healthy": 3, "desired": 4, "expected": 3}, "minAvailable 4 of 3 pods"),
        ({"maxUnavailable": 0}, {"healthy": 3, "desired": 3, "expected": 3}, "maxUnavailable 0"),
        ({"maxUnavailable": "0%"}, {"healthy": 3, "desired": 3, "expected": 3}, "maxUnavailable 0%"),
    ],
)
def test_a_budget_that_never_allows_a_disruption_is_to_be_changed(spec, numbers, rule):
    why, mend = only(web(), budget_object(spec=spec, **numbers))
    assert why.startswith("The disruption budget b needs ")
    assert why.endswith(f"it can never allow a disruption: {rule}")
    assert "change the budget" in mend


def test_more_replicas_mend_what_they_can():
    deployment = workload_object(replicas=3, strategy={"type": "Recreate"})
    replica_set = workload_object("ReplicaSet", "web", replicas=3, owner=owner_reference("Deployment", "web"))
    count = {"healthy": 3, "desired": 3, "expected": 3}
    mend = only(web(), deployment, replica_set, budget_object(spec={"minAvailable": 3}, **count))[1]
    assert mend.startswith("raise the replicas of Deployment n/web to 4, or change the budget")
    half = {"minAvailable": "80%"}  # of 3 pods 3, of 5 pods 4
    assert "Deployment n/web to 5" in only(web(), deployment, replica_set, budget_object(spec=half, **count))[1]
    for spec in ({"minAvailable": "100%"}, {"maxUnavailable": 0}, {"maxUnavailable": "0%"}):
        assert "replicas" not in only(web(), deployment, replica_set, budget_object(spec=spec, **count))[1]


def test_the_new_pod_of_a_single_one_can_start_first():
    replica_set = workload_object("ReplicaSet", "web", owner=owner_reference("Deployment", "web"))
    mend = only(web(), workload_object(), replica_set, budget_object())[1]
    assert "cordon the node, then kubectl rollout restart deployment/web -n n), or raise the replicas" in mend


def test_with_surge_what_gets_one_more_pod_is_not_blocked():
    deployment = workload_object("Deployment", "web")
    replica_set = workload_object("ReplicaSet", "web", owner=owner_reference("Deployment", "web"))
    objects = web(), deployment, replica_set, budget_object()
    assert blocked_of(*objects)
    assert blocked_of(*objects, surge=True) == []
    [note] = [text for text in notes_of(*objects, surge=True) if "n/p" in text]
    assert note.startswith("--surge gives their workloads one more pod for a time: n/p (")


@pytest.mark.parametrize("why", ["a StatefulSet", "a pod is not ready", "no workload", "an old status", "two budgets"])
def test_with_surge_all_others_stay_blocked(why):
    kind, healthy = "StatefulSet" if why == "a StatefulSet" else "ReplicaSet", 0 if why == "a pod is not ready" else 1
    workload = [] if why == "no workload" else [workload_object(kind, "web")]
    budgets = [budget_object(healthy=healthy, generation=2 if why == "an old status" else 1)]
    budgets += [budget_object("other")] if why == "two budgets" else []
    objects = web(kind=kind, owner="web"), *workload, *budgets
    assert blocked_of(*objects, surge=True), why
    assert not any("--surge" in text for text in notes_of(*objects, surge=True))


def test_pods_that_are_not_ready_are_named_wherever_they_are():
    objects = [
        web("a"),
        web("b", node="n2", ready=False),
        web("gone", node="n3", ready=False, phase="Failed"),
        budget_object(healthy=1, desired=2, expected=3, spec={"minAvailable": 2}),
    ]
    why, mend = only(*objects)
    assert why == "The disruption budget b needs 2 healthy pods and has 1 currently: not ready: n/b"
    assert mend == "mend these pods: n/b; unhealthyPodEvictionPolicy: AlwaysAllow lets those that are not ready go"


def test_a_policy_that_is_set_is_not_advised():
    spec = {"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    objects = [web("a"), web("b", node="n2", ready=False), budget_object(healthy=1, desired=2, expected=3, spec=spec)]
    assert "AlwaysAllow" not in only(*objects)[1]


def test_a_budget_without_a_pod_in_sight_is_waited_for():
    why, mend = only(web("a"), budget_object(healthy=2, desired=2, expected=3, spec={"minAvailable": 2}))
    assert why.endswith("2 of 3 expected pods are healthy")
    assert mend == "wait until its pods are ready"


def test_a_value_that_is_no_number_is_not_judged():
    why, _ = only(web(), budget_object(healthy=1, desired=2, expected=1, spec={"minAvailable": "many"}))
    assert "never" not in why


def test_without_a_count_the_pods_in_sight_are_counted():
    """Finished pods are not expected."""
    pods = [web("a"), web("b", node="n2"), web("done", node="n2", phase="Succeeded")]
    why, _ = only(*pods, budget_object(expected=0, healthy=2, desired=2, spec={"minAvailable": 2}))
    assert why.endswith("it can never allow a disruption: minAvailable 2 of 2 pods")


def test_many_pods_are_not_all_named():
    pods = [web(f"p{number}", node="n2", ready=False) for number in range(5)]
    numbers = {"healthy": 1, "desired": 2, "expected": 9, "spec": {"minAvailable": 2}}
    assert only(web("here"), *pods, budget_object(**numbers))[0].endswith("not ready: n/p0, n/p1, n/p2, n/p3, n/p4")
    more = [*pods, web("p5", node="n2", ready=False), web("p6", node="n2", ready=False)]
    assert only(web("here"), *more, budget_object(**numbers))[0].endswith("n/p3, n/p4 and 2 more")


def test_a_status_that_is_older_than_its_spec_is_waited_for():
    why, mend = only(web(), budget_object(allowed=1, generation=3, observed=2))
    assert "(observedGeneration 2 of 3)" in why
    assert mend.startswith("wait until the disruption controller")


def test_a_budget_that_cannot_be_counted_says_why():
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}
    why, mend = only(web(), budget_object(healthy=0, desired=0, expected=0, conditions=[condition]))
    assert "failed sync: no scale" in why
    assert "a controller with replicas" in mend


def test_two_budgets_name_each_other():
    first, second = blocked_of(web(), budget_object("b1"), budget_object("b2"))
    assert "PodDisruptionBudget b2 covers pod n/p too" in first["why"]
    assert "PodDisruptionBudget b1 covers pod n/p too" in second["why"]
    assert "leave one budget for each pod" in first["mend"]


def test_blocked_pods_are_evicted_after_the_mends():
    assert plan_of(web(), budget_object())["evict"] == [[{"namespace": "n", "name": "p"}]]
