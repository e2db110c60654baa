"""The rules about drains, each just kept and just broken."""

import pytest

from lastcall_lab.simulation.rules.base import DrainTold, Invariant, RunRecord
from lastcall_lab.simulation.rules.drain_budgets import unavailable_pods
from lastcall_lab.simulation.rules.drains import find_violations
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind
from lastcall_lab.simulation.truth import BudgetState, CordonState, LeaseState, Noted, PodState, RemovalRequest


def workload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", **more):
    return ScenarioWorkload(kind=kind, name=name, **more)


WEB = workload(replicas=3, max_unavailable="1")


def pod(at, uid, by="", app="web", node="node-1", ready=True, ending=False, gone=False, evicted=False):
    return Noted(at, uid, PodState(uid, uid, app, node, ready, evicted, ending, gone, by))


def there(*uids, **more):
    return [pod(0, uid, **more) for uid in uids]


def removed(at, uid, by="drain-1", **more):
    return pod(at, uid, by, ending=True, **more)


OWNED = [Noted(0.0, "node-1", LeaseState("drain-1-1", "drain-1"))]


CORDONED = [Noted(0.0, node, CordonState(True, None, "")) for node in ("node-1", "node-2")]
NEVER = float("inf")


def broken(
    *states,
    workloads=(WEB,),
    leases=OWNED,
    cordons=CORDONED,
    deletes_from=NEVER,
    stops_after=NEVER,
    nodes=("node-1",),
    budgets=(),
    asked=(),
    network=(),
    lacks_leases=False,
):
    told = {name: DrainTold(nodes, deletes_from, stops_after, lacks_leases) for name in ("drain-1", "drain-2")}
    run = RunRecord(
        happenings=(),
        powers=(),
        records=(),
        pods={},
        end=100.0,
        drains=told,
        workloads=workloads,
        pod_states=states,
        leases=leases,
        cordon_states=cordons,
        budget_states=budgets,
        removal_requests=asked,
        clear_network=network,
    )
    return [one.rule for one in find_violations(run)]


def test_a_budget_of_one_lets_one_go_until_another_is_ready():
    assert broken(*there("a", "b", "c"), removed(1, "a")) == []
    assert broken(*there("a", "b", "c"), removed(1, "a"), removed(2, "b")) == [Invariant.BUDGET]
    ready = pod(1.5, "d", node="node-2")
    assert broken(*there("a", "b", "c"), removed(1, "a"), ready, removed(2, "b")) == []
    starts = pod(1.5, "d", node="node-2", ready=False)
    assert broken(*there("a", "b", "c"), removed(1, "a"), starts, removed(2, "b")) == [Invariant.BUDGET]


def test_a_pod_that_was_not_ready_uses_up_no_budget():
    assert broken(*there("a", "b", ready=False), removed(1, "a", ready=False), removed(1, "b", ready=False)) == []


def healthy(at, count, by="controllers"):
    return Noted(at, "web", BudgetState(count, by))


def test_what_others_have_taken_counts_whether_a_pod_is_deleted_or_evicted():
    lost = [*there("a", "b", "c"), removed(1, "a", by="controllers")]
    assert broken(*lost, removed(2, "b")) == [Invariant.BUDGET]
    assert broken(*lost, removed(2, "b", evicted=True)) == [Invariant.BUDGET]
    assert broken(*lost, pod(1.5, "d"), removed(2, "b")) == []


def test_a_loss_that_the_controller_has_not_seen_is_nobodys_mistake_but_for_a_deletion():
    lost = [*there("a", "b", "c"), pod(1, "a", ready=False)]
    unseen, seen = [healthy(0, 3)], [healthy(0, 3), healthy(1.5, 2)]
    assert broken(*lost, removed(2, "b", evicted=True), budgets=unseen) == []
    assert broken(*lost, removed(2, "b", evicted=True), budgets=seen) == [Invariant.BUDGET]
    assert broken(*lost, removed(2, "b"), budgets=unseen) == [Invariant.BUDGET]


def test_what_drains_have_taken_since_the_controllers_word_counts():
    states = [*there("a", "b", "c"), removed(1, "a", evicted=True), removed(2, "b", evicted=True)]
    assert broken(*states, budgets=[healthy(0, 3)]) == [Invariant.BUDGET]
    by_drain = [healthy(0, 3), healthy(1.5, 3, by="drain-1")]
    assert broken(*states, budgets=by_drain) == [Invariant.BUDGET], "an eviction writes the status too"


def test_two_drains_have_one_budget():
    leases = [*OWNED, Noted(0.0, "node-2", LeaseState("drain-2-1", "drain-2"))]
    states = [*there("a", "c"), pod(0, "b", node="node-2"), removed(1, "a"), removed(2, "b", "drain-2", node="node-2")]
    assert broken(*states, leases=leases, nodes=("node-1", "node-2")) == [Invariant.BUDGET]


@pytest.mark.parametrize(
    ("at", "evicted", "found"), [(2, False, []), (1.4, False, [Invariant.BUDGET]), (2, True, [Invariant.BUDGET])]
)
def test_only_deletions_pass_a_budget_and_only_when_the_time_is_over(at, evicted, found):
    last = removed(at, "b", evicted=evicted)
    assert broken(*there("a", "b", "c"), removed(1, "a"), last, deletes_from=1.5) == found


def test_only_who_has_the_lease_removes_pods():
    other = [*OWNED, Noted(1.0, "node-1", LeaseState("drain-2-1", "drain-2"))]
    gone = [*OWNED, Noted(1.0, "node-1", LeaseState("", "drain-1"))]
    assert broken(*there("a", "b", "c"), removed(0.5, "a"), leases=other) == []
    assert broken(*there("a", "b", "c"), removed(1, "a"), leases=other) == [Invariant.ONE_OWNER]
    assert broken(*there("a", "b", "c"), removed(1, "a"), leases=gone) == [Invariant.ONE_OWNER]
    assert broken(*there("a", "b", "c"), removed(1, "a"), leases=[]) == [Invariant.ONE_OWNER]
    ten = [Noted(0.0, "node-1", LeaseState("drain-10-1", "drain-10"))]
    assert broken(*there("a", "b", "c"), removed(1, "a"), leases=ten) == [Invariant.ONE_OWNER]
    assert broken(*there("a", "b", "c"), removed(1, "a"), leases=[], lacks_leases=True) == []


def test_pods_elsewhere_and_those_of_daemon_sets_stay():
    leases = [Noted(0.0, "node-2", LeaseState("drain-1-1", "drain-1"))]
    assert broken(*there("b", "c"), pod(0, "a", node="node-2"), removed(1, "a", node="node-2"), leases=leases) == [
        Invariant.FOREIGN_POD
    ]
    logs = workload(ScenarioWorkloadKind.DAEMON_SET, "logs")
    assert broken(pod(0, "a", app="logs"), removed(1, "a", app="logs"), workloads=(logs,)) == [Invariant.FOREIGN_POD]


def test_no_pod_goes_before_its_node_is_cordoned():
    open_, shut = (Noted(at, "node-1", CordonState(at > 0, None, "drain-1")) for at in (0.0, 0.5))
    assert broken(*there("a", "b", "c"), removed(1, "a"), cordons=[open_]) == [Invariant.CORDONED]
    assert broken(*there("a", "b", "c"), removed(1, "a"), cordons=[open_, shut]) == []
    again = Noted(0.7, "node-1", CordonState(False, None, ""))
    assert broken(*there("a", "b", "c"), removed(1, "a"), cordons=[open_, shut, again]) == [], (
        "somebody else was faster"
    )
    later = [Noted(0.8, "node-1", LeaseState("drain-1-2", "drain-1"))]
    states = [open_, shut, again]
    assert broken(*there("a", "b", "c"), removed(1, "a"), cordons=states, leases=later) == [Invariant.CORDONED]


def test_who_hears_of_no_uncordoning_is_excused_only_by_a_fault():
    states = [cordon(0, "drain-1", cordoned=True), cordon(5, "", cordoned=False)]
    removals = [removed(at, uid) for at, uid in ((5.5, "a"), (7, "b"))]
    web = workload(replicas=3, max_unavailable="2")
    assert broken(*there("a", "b", "c"), *removals[:1], cordons=states, workloads=(web,)) == []
    assert broken(*there("a", "b", "c"), *removals, cordons=states, workloads=(web,)) == [Invariant.CORDONED]
    fault = [Noted(1.0, "", False), Noted(2.0, "", True)]
    assert broken(*there("a", "b", "c"), *removals, cordons=states, workloads=(web,), network=fault) == []


def request(at, uid, run="drain-1-1"):
    return Noted(at, run, RemovalRequest("db-0", uid, evicts=True))


def test_a_run_asks_for_the_pods_that_it_has_chosen_and_by_their_uids():
    came = pod(5, "b")
    assert broken(*there("a"), came, asked=[request(1, "a")]) == []
    assert broken(*there("a"), came, asked=[request(1, "")]) == [Invariant.UNPLANNED]
    assert broken(*there("a"), came, asked=[request(1, "a"), request(6, "b")]) == [Invariant.UNPLANNED]
    assert broken(*there("a"), came, asked=[request(1, "a"), request(6, "b", run="drain-1-2")]) == []


def test_who_is_to_stop_asks_for_nothing_when_its_time_is_over():
    assert broken(*there("a"), asked=[request(9, "a")], stops_after=9.0) == []
    assert broken(*there("a"), asked=[request(9.1, "a")], stops_after=9.0) == [Invariant.STOPPED]
    assert broken(*there("a"), asked=[request(9.1, "a", run="drain-1-2")], stops_after=9.0) == [], "not its Lease"


def cordon(at, by, *, cordoned, claims=None):
    return Noted(at, "node-1", CordonState(cordoned, claims, by))


def test_a_cordon_of_others_is_neither_taken_back_nor_claimed():
    foreign = cordon(0, "", cordoned=True)
    assert broken(cordons=[foreign, cordon(1, "drain-1", cordoned=True, claims=False)]) == []
    assert broken(cordons=[foreign, cordon(1, "drain-1", cordoned=True, claims=True)]) == [Invariant.CORDON]
    assert broken(cordons=[foreign, cordon(1, "drain-1", cordoned=False)]) == [Invariant.CORDON]
    assert broken(cordons=[foreign, cordon(1, "", cordoned=False)]) == []
    own = cordon(1, "drain-1", cordoned=True, claims=True)
    assert broken(cordons=[cordon(0, "", cordoned=False), own, cordon(2, "drain-1", cordoned=True)]) == []


@pytest.mark.parametrize(
    ("more", "most"),
    [
        ({"max_unavailable": "1"}, 1),
        ({"max_unavailable": "34%"}, 2),
        ({"min_available": "2"}, 1),
        ({"min_available": "50%"}, 1),
        ({"min_available": "5"}, 0),
        ({}, None),
    ],
)
def test_what_a_budget_allows_of_three(more, most):
    assert unavailable_pods(workload(replicas=3, **more)) == most


def guarded(at, uid, by="drain-1", **more):
    """It is asked to end while its application has work for it."""
    return Noted(at, uid, removed(at, uid, by).what._replace(had_work=True, **more))


def held(at, uid):
    return Noted(at, uid, pod(at, uid).what._replace(is_held=True))


def test_a_guarded_pod_stays_until_its_application_is_ready():
    pods = there("a", "b", "c")
    assert broken(*pods, removed(1, "a")) == [], "it is ready, or not guarded"
    assert broken(*pods, guarded(1, "a")) == [Invariant.GUARDED]
    assert broken(*pods, guarded(1, "a", is_evicted=True), budgets=[healthy(0, 3)]) == [Invariant.GUARDED]
    assert broken(*pods, guarded(1, "a", by="controllers")) == []


def test_while_no_guard_answers_its_policy_may_let_pods_go_but_not_past_its_word():
    pods = there("a", "b", "c")
    unanswered = {"is_unanswered": True}
    assert broken(*pods, guarded(5, "a", **unanswered)) == [], "it has never spoken"
    assert broken(*pods, held(4.5, "a"), guarded(5, "a", **unanswered)) == [], "a moment ago"
    assert broken(*pods, held(1, "a"), guarded(5, "a", **unanswered)) == [Invariant.GUARDED]
    assert broken(*pods, held(1, "a"), pod(2, "a"), guarded(5, "a", **unanswered)) == [], "it has taken that back"
    assert broken(*pods, held(1, "a"), guarded(5, "a", is_evicted=True, **unanswered)) == [], "an eviction is its"
    fault = [Noted(1.0, "", False), Noted(2.0, "", True)]
    assert broken(*pods, held(1, "a"), guarded(5, "a", **unanswered), network=fault) == [], "it may not have heard"
