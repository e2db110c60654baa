"""The failover controller's metrics: names, labels and values, from what it tells and beside the lab's control plane."""

from dataclasses import replace

import pytest
from support.common.metrics_page import samples
from support.failover.virtual_cluster import ELECTION, NAMES, failing_over
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.resources import LEASES, NODES
from lastcall.failover.controller.failover_controller import ControllerStatus
from lastcall.failover.decisions import steps
from lastcall.failover.evidence.facts import InstanceSeen, PowerSeen
from lastcall.failover.reporting.controller_events import CallReported, FencerAnswered, StepExecuted
from lastcall.failover.upstream.controller_manager_rules import RemovalReason
from lastcall.model.power import InstanceState, PowerState
from lastcall.wiring.controller import FailoverMetrics

DELETES = "pod_gc_collector_force_delete_pods_total"
ERRORS = "pod_gc_collector_force_delete_pod_errors_total"
DETACHES = "attach_detach_controller_attachdetach_controller_forced_detaches"
TIMES = "lastcall_failover_step_duration_seconds"
IN_STEP = "lastcall_failover_step_nodes"
ACTIONS = "lastcall_failover_action_duration_seconds"
EVIDENCE = "lastcall_failover_evidence_total"
ANSWERS = "lastcall_failover_fence_answers_total"
ORDERS = "lastcall_failover_orders_total"
STATES = "lastcall_failover_nodes"
LEADS = "lastcall_failover_leads"

STEPS = {"Suspect", "Prove", "Taint", "Delete", "ForceDelete", "Detach", "Verify", "Replacement", "Back"}
KINDS = {"FenceOff", "InstanceOff", "WatchdogExpired", "StorageLeaseExpired", "NewBoot", "Person", "LastWord"}

REST = ControllerStatus(leads=False, waiting_for="", nodes=0, in_trouble=0, marked=0)
OUT = "out-of-service"
ACTED = CallReported(
    verb="off", node="n", boot_id="b", policy="p", why="w", evidence=("e",), began=1.0, ended=2.0, fencer="f"
)
REMOVED = replace(ACTED, verb="force-delete", namespace="shop", name="db-0", reason=RemovalReason.OUT_OF_SERVICE)
DETACHED = replace(ACTED, verb="detach", name="va", reason=RemovalReason.OUT_OF_SERVICE)


def counted(*happened, status=REST):
    """What is not 0 after these, and no time at which a series began."""
    counting = FailoverMetrics(Hand(1.0))
    for one in happened:
        counting.record(one)
    return {
        key: value
        for key, value in samples(counting.render_metrics(status)).items()
        if value and "_created" not in key[0]
    }


def powered(power):
    return FencerAnswered(node="n", fact=PowerSeen(boot_id="b", source="f", power=power, asked=1.0, answered=1.0))


def in_cloud(state):
    return FencerAnswered(node="n", fact=InstanceSeen(boot_id="b", source="f", state=state, asked=1.0, answered=1.0))


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ((), {}),
        ((REMOVED, REMOVED), {(DELETES, "shop", OUT): 2}),
        ((replace(REMOVED, error="no"),), {(DELETES, "shop", OUT): 1, (ERRORS, "shop", OUT): 1}),
        ((REMOVED, replace(REMOVED, namespace="other")), {(DELETES, "shop", OUT): 1, (DELETES, "other", OUT): 1}),
        ((replace(REMOVED, gone=True),), {}),
        ((DETACHED,), {(DETACHES, OUT): 1}),
        ((replace(DETACHED, error="no"),), {}),
        ((replace(DETACHED, gone=True),), {}),
        ((replace(ACTED, ended=None), ACTED), {(ORDERS, "off", "Accepted"): 1}),
        ((replace(ACTED, error="no"),), {(ORDERS, "off", "Failed"): 1}),
        ((replace(ACTED, verb="on"),), {(ORDERS, "on", "Accepted"): 1}),
        ((replace(ACTED, verb="on", error="no"),), {(ORDERS, "on", "Failed"): 1}),
        ((replace(ACTED, verb="taint"), replace(ACTED, verb="untaint"), replace(ACTED, verb="delete")), {}),
        ((powered(PowerState.ON), powered(PowerState.OFF)), {(ANSWERS, "ON"): 1, (ANSWERS, "OFF"): 1}),
        ((powered(PowerState.UNKNOWN), in_cloud(InstanceState.NOT_FOUND)), {(ANSWERS, "UNKNOWN"): 2}),
        ((in_cloud(InstanceState.STOPPED),), {(ANSWERS, "OFF"): 1}),
    ],
)
def test_what_is_counted_of_a_happening(happened, expected):
    assert counted(*happened) == expected


def test_how_long_an_action_took():
    found = counted(StepExecuted(node="n", step=steps.AskPower(fencer="f", why="w"), seconds=3.0))
    assert found[(f"{ACTIONS}_count", "AskPower")] == 1
    assert found[(f"{ACTIONS}_sum", "AskPower")] == 3


def test_the_state_of_now():
    status = replace(REST, leads=True, nodes=5, in_trouble=2, marked=1)
    expected = {(STATES, "All"): 5, (STATES, "InTrouble"): 2, (STATES, "Marked"): 1, (LEADS,): 1}
    assert counted(status=status) == expected


def test_what_is_rare_is_there_from_the_beginning():
    found = samples(FailoverMetrics(Hand(1.0)).render_metrics(REST))
    assert {one[1] for one in found if one[0] == f"{TIMES}_count"} == STEPS
    assert {one[1] for one in found if one[0] == IN_STEP} == STEPS
    assert {one[1] for one in found if one[0] == EVIDENCE} == KINDS
    assert {one[1] for one in found if one[0] == ANSWERS} == {"ON", "OFF", "UNKNOWN"}
    assert {one[1:] for one in found if one[0] == ORDERS} == {
        (order, outcome) for order in ("off", "on") for outcome in ("Accepted", "Failed")
    }


def of(found, name):
    """The values of its only label that have a value, but for 0."""
    return {key[1]: value for key, value in found.items() if key[0] == name and value}


@failing_over
async def test_a_failover_from_the_first_suspicion_until_the_node_is_back(world):
    candidate = world.start()
    gone = world.place()
    await world.cluster.settle(5)
    pulled = world.now
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    await world.cluster.settle(30)
    found = candidate.counted
    assert of(found, IN_STEP) == {"Back": 1}
    assert of(found, EVIDENCE) == {"FenceOff": 1}
    assert found[(ANSWERS, "OFF")] >= 2
    assert found[(ORDERS, "off", "Accepted")] == 1
    assert found[(DELETES, "default", OUT)] >= 1
    assert (found[(STATES, "All")], found[(STATES, "Marked")], found[(LEADS,)]) == (len(NAMES), 1, 1)
    assert 0 < found[(f"{ACTIONS}_sum", "SwitchOff")] < 30
    await world.nodes.boot(gone)
    await world.until(lambda: not world.mark(gone), 120)
    await world.cluster.settle(10)
    found = candidate.counted
    times, often = of(found, f"{TIMES}_sum"), of(found, f"{TIMES}_count")
    assert {"Suspect", "Prove", "Taint", "ForceDelete", "Verify", "Back"} <= times.keys()
    assert 14 < times["Suspect"] < 20, "its policy's 15 s, of which it was looked at closely at the end alone"
    assert times["Back"] > 20
    assert times["Prove"] >= found[(f"{ACTIONS}_sum", "SwitchOff")]
    assert sum(times.values()) <= world.now - pulled + 15, "the last sign of life was before"
    assert often["Back"] == 1
    assert of(found, IN_STEP) == {}
    assert of(found, EVIDENCE) == {"FenceOff": 1}, "that it is back has decided nothing"
    assert found[(STATES, "Marked")] == 0


@failing_over(policy={"fencers": []})
async def test_a_failover_by_the_word_of_a_person(world):
    candidate = world.start()
    node = world.place()
    await world.cluster.settle(5)
    world.nodes.pull(node)
    await world.cluster.settle(60)
    assert of(candidate.counted, IN_STEP) == {"Prove": 1}
    assert of(candidate.counted, EVIDENCE) == {}
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    await world.cluster.patch(NODES, node, {"spec": {"taints": [taint]}}, namespace="")
    await world.until(lambda: world.place() not in (None, node))
    found = candidate.counted
    assert of(found, EVIDENCE) == {"Person": 1}
    assert of(found, ANSWERS) == {}
    assert of(found, f"{TIMES}_sum")["Prove"] > 20


@failing_over
async def test_who_leads_no_more_has_no_node_in_a_step(world):
    candidate = world.start()
    node = world.place()
    await world.cluster.settle(5)
    world.fences[node].away = True
    world.nodes.pull(node)
    await world.until(lambda: of(candidate.counted, IN_STEP) == {"Prove": 1})
    taken = {"spec": {"holderIdentity": "another"}}
    await world.cluster.patch(LEASES, ELECTION.name, taken, namespace=ELECTION.namespace)
    await world.until(lambda: not candidate.counted[(LEADS,)])
    await world.until(lambda: not of(candidate.counted, IN_STEP), 10)
    assert "Prove" not in of(candidate.counted, f"{TIMES}_count"), "it may go on with another controller"
