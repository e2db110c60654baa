"""PodDisruptionBudgets: what may be evicted, why not, and that nothing is spent twice."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.model.budgets import (
    Budget,
    EvictionAllowed,
    EvictionObstacle,
    EvictionRefused,
    decide_eviction,
    is_ready,
    spend_disruption,
)
from lastcall.model.pods import Pod

NOW = "2026-01-01T00:00:00Z"


def pod(name="p", *, phase="Running", is_ready=True, labels=None, namespace="n", **metadata):
    labels = {"app": "a"} if labels is None else labels
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
            "status": {"phase": phase, "conditions": conditions},
        },
        Pod,
    )


def budget(name="b", *, allowed=0, healthy=1, desired=1, generation=1, observed=1, namespace="n", **more):
    spec = {"selector": {"matchLabels": {"app": "a"}}, **more.pop("spec", {})}
    status = {
        "observedGeneration": observed,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        **more,
    }
    metadata = {"name": name, "namespace": namespace, "generation": generation}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Budget)


def because(reason, message, status="False"):
    return {"conditions": [{"type": "DisruptionAllowed", "status": status, "reason": reason, "message": message}]}


def policy(name):
    return {"unhealthyPodEvictionPolicy": name}


FREE = {
    "nobody's pod": (pod(), []),
    "another namespace's budget": (pod(), [budget(namespace="other")]),
    "another label": (pod(labels={"app": "b"}), [budget()]),
    "no labels": (pod(labels={}), [budget()]),
    "no selector": (pod(), [budget(spec={"selector": None})]),
    "a selector that makes no sense": (
        pod(),
        [budget(spec={"selector": {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["a"]}]}})],
    ),
    "pending": (pod(phase="Pending"), [budget()]),
    "succeeded": (pod(phase="Succeeded"), [budget()]),
    "failed": (pod(phase="Failed"), [budget()]),
    "terminating": (pod(deletionTimestamp=NOW), [budget()]),
    "terminating, two budgets": (pod(deletionTimestamp=NOW), [budget("b1"), budget("b2")]),
    "unready, enough others": (pod(is_ready=False), [budget(healthy=2, desired=2)]),
    "unready, more than enough others": (pod(is_ready=False), [budget(healthy=3, desired=2, allowed=1)]),
    "unready, stale budget": (pod(is_ready=False), [budget(healthy=2, desired=2, generation=2)]),
    "unready, IfHealthyBudget": (
        pod(is_ready=False),
        [budget(healthy=2, desired=2, spec=policy("IfHealthyBudget"))],
    ),
    "unready, AlwaysAllow": (pod(is_ready=False), [budget(healthy=0, desired=2, spec=policy("AlwaysAllow"))]),
}

PAID = {
    "ready": (pod(), budget(allowed=1)),
    "an empty selector selects everything": (pod(labels={}), budget(allowed=1, spec={"selector": {}})),
    "unready, nothing is desired": (pod(is_ready=False), budget(allowed=1, healthy=0, desired=0)),
    "unready, too few others, but allowed": (pod(is_ready=False), budget(allowed=1, healthy=1, desired=2)),
    "at the limit of remembered pods": (
        pod(),
        budget(allowed=1, disruptedPods={f"p{number}": NOW for number in range(2000)}),
    ),
}

NEEDS = "The disruption budget b needs 2 healthy pods and has 1 currently"
BEGIN = "The disruption budget b does not allow evicting pods currently"

REFUSED = {
    "ready": (pod(), [budget(healthy=1, desired=2)], EvictionObstacle.SPENT, NEEDS),
    "ready, AlwaysAllow": (
        pod(),
        [budget(healthy=1, desired=2, spec=policy("AlwaysAllow"))],
        EvictionObstacle.SPENT,
        NEEDS,
    ),
    "unready, too few others": (pod(is_ready=False), [budget(healthy=1, desired=2)], EvictionObstacle.SPENT, NEEDS),
    "unready, nothing is desired": (
        pod(is_ready=False),
        [budget(healthy=0, desired=0)],
        EvictionObstacle.SPENT,
        "The disruption budget b needs 0 healthy pods and has 0 currently",
    ),
    "stale": (
        pod(),
        [budget(allowed=1, generation=2)],
        EvictionObstacle.STALE,
        "The disruption budget b is still being processed by the server.",
    ),
    "never counted": (
        pod(),
        [budget(observed=0)],
        EvictionObstacle.STALE,
        "The disruption budget b is still being processed by the server.",
    ),
    "negative": (pod(), [budget(allowed=-1)], EvictionObstacle.NEGATIVE, "pdb disruptions allowed is negative"),
    "too many are remembered": (
        pod(),
        [budget(allowed=1, disruptedPods={f"p{number}": NOW for number in range(2001)})],
        EvictionObstacle.UNCONFIRMED,
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
    ),
    "the controller cannot count": (
        pod(),
        [budget(healthy=0, desired=0, **because("SyncFailed", "no scale"))],
        EvictionObstacle.SPENT,
        f"{BEGIN} because it failed sync: no scale",
    ),
    "the controller could not count before": (
        pod(),
        [budget(healthy=1, desired=2, **because("SyncFailed", "no scale", status="True"))],
        EvictionObstacle.SPENT,
        NEEDS,
    ),
    "the controller has another reason": (
        pod(),
        [budget(healthy=3, desired=2, **because("Other", "not today"))],
        EvictionObstacle.SPENT,
        f"{BEGIN} (Other): not today",
    ),
    "no reason is known": (
        pod(),
        [budget(healthy=3, desired=2, **because("Other", ""))],
        EvictionObstacle.SPENT,
        BEGIN,
    ),
    "several": (pod(), [budget("b1", allowed=1), budget("b2", allowed=1)], EvictionObstacle.SEVERAL, ""),
}


@pytest.mark.parametrize(("victim", "budgets"), FREE.values(), ids=FREE)
def test_goes_without_spending(victim, budgets):
    found = decide_eviction(victim, budgets)
    assert isinstance(found, EvictionAllowed)
    assert found.spends is None


@pytest.mark.parametrize(("victim", "its"), PAID.values(), ids=PAID)
def test_goes_and_spends(victim, its):
    others = [budget("other", namespace="other"), budget("b2", spec={"selector": {"matchLabels": {"app": "z"}}})]
    assert decide_eviction(victim, [*others, its]) == EvictionAllowed(spends=its)


@pytest.mark.parametrize(("victim", "budgets", "why", "cause"), REFUSED.values(), ids=REFUSED)
def test_stays(victim, budgets, why, cause):
    assert decide_eviction(victim, budgets) == EvictionRefused(why, budgets, cause)


def test_what_is_spent_is_remembered():
    before = budget(allowed=2, disruptedPods={"x": "2026-01-01T00:00:00Z"})
    after = spend_disruption(before, "p", "2026-01-01T00:01:00Z")
    assert after.status.disruptions_allowed == 1
    assert after.status.disrupted_pods == {"x": "2026-01-01T00:00:00Z", "p": "2026-01-01T00:01:00Z"}
    assert before.status.disruptions_allowed == 2
    assert msgspec.structs.replace(after, status=before.status) == before


pods = st.builds(
    pod,
    phase=st.sampled_from(["Running", "Running", "Running", "Pending", "Succeeded", "Failed"]),
    is_ready=st.booleans(),
    labels=st.sampled_from([{"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}, {}]),
)


@given(
    victims=st.lists(pods, max_size=12),
    allowed=st.integers(-1, 6),
    healthy=st.integers(0, 6),
    desired=st.integers(0, 6),
    unhealthy=st.sampled_from([None, "IfHealthyBudget", "AlwaysAllow"]),
)
def test_never_more_healthy_pods_go_than_allowed(victims, allowed, healthy, desired, unhealthy):
    """Whatever is evicted, one after the other, against the budget as the ones before have left it."""
    its = budget(allowed=allowed, healthy=healthy, desired=desired, spec=policy(unhealthy))
    gone = []
    for number, victim in enumerate(victims):
        answer = decide_eviction(victim, [its])
        if isinstance(answer, EvictionAllowed):
            gone.append(victim)
            its = spend_disruption(answer.spends, f"p{number}", NOW) if answer.spends else its
    healthy_ones = [one for one in gone if its.covers(one) and is_ready(one) and one.status.phase == "Running"]
    assert len(healthy_ones) <= max(allowed, 0)
    assert its.status.disruptions_allowed >= min(allowed, 0)
    assert len(its.status.disrupted_pods or {}) == allowed - its.status.disruptions_allowed
