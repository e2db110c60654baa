"""How long a drain takes: waves by what budgets allow, their longest grace, and the wait for replacements."""

import pytest
from support.drain.objects import owned_object, pod_object
from support.drain.plans import budget_object, plan_of

WEB = {"app": "web"}


def web(name, **more):
    return owned_object(name, **{"labels": WEB, **more})


THREE = [web("a"), web("b"), web("c")]

CASES = {
    "nothing": ([], {}, 0),
    "nothing goes": ([pod_object(annotations={"kubernetes.io/config.mirror": "x"})], {}, 0),
    "the longest of a wave": ([web("a", grace=5), web("b", grace=90)], {}, 90),
    "the default": ([web("a", grace=None)], {}, 30),
    "none": ([web("a", grace=0)], {}, 0),
    "the option": ([web("a", grace=5), web("b", grace=90)], {"grace_period": 7}, 7),
    "the option 0": ([web("a")], {"grace_period": 0}, 0),
    "finished": ([web("a", phase="Succeeded", grace=50)], {}, 0),
    "terminating, with a shorter grace": (
        [web("a", deletion="2026-01-01T12:00:00Z", deletionGracePeriodSeconds=3)],
        {},
        3,
    ),
    "tiers": ([web("a", grace=10), web("b", grace=20, priority=5)], {}, 30),
    "one at a time": ([*THREE, budget_object(allowed=1)], {}, 3 * 30 + 2 * 30),
    "two at a time": ([*THREE, budget_object(allowed=2)], {}, 2 * 30 + 30),
    "all at once": ([*THREE, budget_object(allowed=3)], {}, 30),
    "blocked counts as one at a time": ([*THREE, budget_object()], {}, 3 * 30 + 2 * 30),
    "deletions know no budgets": ([*THREE, budget_object(allowed=1)], {"disable_eviction": True}, 30),
    "two budgets side by side": (
        [
            *THREE,
            web("x", labels={"app": "x"}),
            budget_object(allowed=1),
            budget_object("b2", allowed=1, selector={"matchLabels": {"app": "x"}}),
        ],
        {},
        3 * 30 + 2 * 30,
    ),
    "budgets that overlap: a, then b and c": (
        [
            web("a", grace=10, labels={"app": "web", "tier": "x"}),
            web("b", grace=20),
            web("c", grace=40, labels={"tier": "x"}),
            budget_object(allowed=1),
            budget_object("b2", allowed=1, selector={"matchLabels": {"tier": "x"}}),
        ],
        {},
        10 + 30 + 40,
    ),
    "5,000 pods of one budget": ([*(web(f"w{one}") for one in range(5000)), budget_object(allowed=1)], {}, 299970),
    "unready pods that no budget counts": (
        [web("a", ready=False), web("b", ready=False), budget_object(allowed=1, healthy=2, desired=2, expected=4)],
        {},
        30,
    ),
    "a budget over two tiers": ([web("a"), web("b", priority=5), budget_object(allowed=1)], {}, 30 + 30 + 30),
    "a budget over two tiers that allows both": (
        [web("a"), web("b", priority=5), budget_object(allowed=2)],
        {},
        30 + 30,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_estimate(name):
    objects, settings, seconds = CASES[name]
    assert plan_of(*objects, **settings)["etaSeconds"] == seconds
