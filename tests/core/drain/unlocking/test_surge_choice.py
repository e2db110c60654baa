"""How a workload gets one more pod: a table."""

import pytest
from support.drain.surges import autoscaler, budget, rolling, workload

from lastcall.drain.unlocking.surge_choice import SurgeImpossible, SurgeMethod, choose_surge

FLOOR = budget(minAvailable=1)


@pytest.mark.parametrize(
    ("subject", "budgets", "scalers", "method"),
    [
        (workload(), [FLOOR], [], SurgeMethod.RESTART),
        (workload(strategy=rolling(1, 0)), [FLOOR], [], SurgeMethod.RESTART),
        (workload(), [FLOOR], [autoscaler(3)], SurgeMethod.RESTART),
        (workload(), [budget(maxUnavailable=0)], [], SurgeMethod.RESTART),
        (workload(strategy=rolling(1, 1)), [FLOOR], [], SurgeMethod.REPLICAS),
        (workload(strategy=rolling("25%", "100%")), [FLOOR], [], SurgeMethod.REPLICAS),
        (workload(replicas=2), [budget(minAvailable=2)], [], SurgeMethod.REPLICAS),
        (workload(replicas=2), [budget(minAvailable=2)], [autoscaler(3)], SurgeMethod.MIN_REPLICAS),
        (workload(replicas=2), [budget(minAvailable=2)], [autoscaler(2, name="other")], SurgeMethod.REPLICAS),
        (workload(replicas=2), [budget(minAvailable=2)], [autoscaler(2, namespace="other")], SurgeMethod.REPLICAS),
        (workload(replicas=4), [budget(minAvailable="80%")], [], SurgeMethod.REPLICAS),
        (workload("ReplicaSet"), [FLOOR], [], SurgeMethod.REPLICAS),
        (workload("ReplicationController"), [FLOOR], [], SurgeMethod.REPLICAS),
        (workload("ReplicaSet"), [budget(minAvailable="x")], [], SurgeMethod.REPLICAS),
        (workload("ReplicaSet"), [], [], SurgeMethod.REPLICAS),
    ],
)
def test_the_first_way_that_is_possible(subject, budgets, scalers, method):
    choice = choose_surge(subject, budgets, scalers)
    assert choice.method is method
    assert choice.subject.metadata.name == ("hpa" if method is SurgeMethod.MIN_REPLICAS else "web")


@pytest.mark.parametrize(
    ("subject", "budgets", "scalers", "why", "mend"),
    [
        (workload("StatefulSet"), [FLOOR], [], "cannot have one more pod", "by hand"),
        (workload(replicas=0), [FLOOR], [], "being removed", "wait"),
        (workload(deleted="2026-01-01T00:00:00Z"), [FLOOR], [], "being removed", "wait"),
        (workload(paused=True), [FLOOR], [], "paused", "kubectl rollout resume deployment/web -n shop"),
        (workload(strategy={"type": "Recreate"}), [FLOOR], [], "strategy Recreate", "by hand"),
        (workload(strategy=rolling(0, 1)), [FLOOR], [], "maxSurge 0", "by hand"),
        (workload(strategy=rolling("many", 1)), [FLOOR], [], "not a percentage", "maxSurge"),
        (workload("ReplicaSet"), [budget(maxUnavailable=0)], [], "wants all 2 pods healthy", "shop/floor"),
        (workload("ReplicaSet"), [budget(minAvailable="100%")], [], "wants all 2 pods healthy", "shop/floor"),
        (workload("ReplicaSet"), [budget(minAvailable=2)], [], "wants all 2 pods healthy", "shop/floor"),
        (workload("ReplicaSet"), [budget(4, minAvailable=5)], [], "wants all 5 pods healthy", "shop/floor"),
        (
            workload(replicas=2),
            [budget(minAvailable=2)],
            [autoscaler(2)],
            "no more than 2 replicas",
            "raise maxReplicas",
        ),
    ],
)
def test_why_there_is_no_way(subject, budgets, scalers, why, mend):
    found = choose_surge(subject, budgets, scalers)
    assert isinstance(found, SurgeImpossible)
    assert why in found.why
    assert mend in found.mend
