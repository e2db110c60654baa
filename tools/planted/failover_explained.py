"""Bugs of what people are told when they ask about a node: by ``failover explain``, ``plan`` and ``acknowledge``."""

from planted.bug import Bug

EXPLAIN = ("tests/core/test_failover_explain_well.py",)
DOUBTS = ("tests/core/test_failover_plan_doubts.py",)

BUGS = [
    Bug(
        "of a node that is well a failover is promised",
        "failover/telling/explain.py",
        "    if _well(case, rule):\n",
        "    if False:\n",
        EXPLAIN,
    ),
    Bug(
        "a node that has said that it goes down is said to be well",
        "failover/telling/explain.py",
        "case.held_until is None and ",
        "",
        EXPLAIN,
    ),
    Bug(
        "a node that is not suspected yet is said to be",
        "failover/telling/explain.py",
        "_in_the_way(case, rule, found) if rule is first else _later(case, rule, found)",
        "_in_the_way(case, rule, found)",
        EXPLAIN,
    ),
    Bug(
        "explain goes on behind the last word",
        "failover/telling/explain.py",
        "(rule in _LAST or not isinstance(found, Wait))",
        "not isinstance(found, Wait)",
        EXPLAIN,
    ),
    Bug(
        "a finished failover is said not to have begun",
        "failover/telling/explain.py",
        "    if _over(case, rule):\n        return",
        "    if False:\n        return",
        EXPLAIN,
    ),
    Bug(
        "a person is told to acknowledge a boot without an id",
        "failover/deciding/claiming.py",
        "    if not case.node.boot_id:\n",
        "    if False:\n",
        EXPLAIN,
    ),
    Bug(
        "a policy without fencers is said to wait for OFF",
        "failover/telling/explain.py",
        "if case.devices or one.what != awaiting.ANYTHING:",
        "if True:",
        EXPLAIN,
    ),
    Bug(
        "a plan does not say that a silent node has no Lease",
        "failover/upstream/doubts.py",
        "if forced and name not in cluster.renewed and",
        "if False and",
        DOUBTS,
    ),
    Bug(
        "a plan does not say that its state is of another time",
        "failover/upstream/doubts.py",
        "return since if since >= ",
        "return since if False and ",
        DOUBTS,
    ),
    Bug(
        "every cluster in which all nodes are silent is said to be of another time",
        "failover/upstream/doubts.py",
        " or (given and not ready):",
        ":",
        DOUBTS,
    ),
    Bug(
        "a plan does not say why a pod is not forced that is evicted",
        "failover/upstream/plan.py",
        "if why and not caution.objection(cluster, name, now):",
        "if False:",
        DOUBTS,
    ),
    Bug(
        "an answer to a closed standard output is lost without a word",
        "cli/options.py",
        "    if sys.stdout is None:",
        "    if False:",
        DOUBTS,
    ),
]
