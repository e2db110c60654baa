"""The failover controller in a rehearsal: what can be done to it and to BMCs, and how that is judged."""

import pytest
from support.simulation.run_records import Story

from lastcall.adapters.kube.resources import NODES
from lastcall.errors import InvalidInput
from lastcall_lab import virtual
from lastcall_lab.simulation.failover.fence_orders import MachineAtOrder, describe_order
from lastcall_lab.simulation.invariants import find_violations
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario import (
    FailoverSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.writer import write_scenario
from lastcall_lab.simulation.truth import FenceOrder


def scenario(*timeline, lasts=300.0, **failover):
    return Scenario(
        name="failover",
        nodes=(NodeGroup(count=3),),
        workloads=(
            ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=3, volume=True, writes=1.0),
        ),
        failover=FailoverSettings(**{"suspect_after": 20.0, **failover}),
        timeline=timeline,
        lasts=lasts,
    )


def rehearsed(*timeline, seed=1, **more):
    """The outcome, and the rehearsal."""

    async def run():
        rehearsal = Rehearsal(scenario(*timeline, **more), seed)
        await rehearsal.run()
        return build_outcome(rehearsal), rehearsal

    return virtual.run(run())


def lost(at=10.0, verb=Verb.POWER_CUT, lasts=None):
    return ScenarioEvent(at=at, verb=verb, nodes=("node-2",), lasts=lasts)


def hits(rehearsal):
    return [one.hit for one in rehearsal.cluster.truth.orders]


def serving(found):
    return found.workloads[0].serving


# -- what happens ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [Verb.POWER_CUT, Verb.HANG, Verb.PARTITION])
def test_a_machine_that_is_lost_is_fenced_and_its_pod_runs_elsewhere(verb):
    found, rehearsal = rehearsed(lost(verb=verb))
    assert found.violations == ()
    assert hits(rehearsal) == ["node-2"]
    assert serving(found) == 3


def test_of_two_controllers_another_goes_on_when_the_one_that_leads_is_cut_off():
    cut = ScenarioEvent(at=30.0, verb=Verb.CUT_FAILOVER, lasts=120.0)
    found, rehearsal = rehearsed(lost(verb=Verb.PARTITION), cut, replicas=2, lasts=400.0)
    assert found.violations == ()
    assert serving(found) == 3
    assert "cut off the failover controller" in [one.kind for one in found.faults]


@pytest.mark.parametrize("steps", [40, 120, 260])
def test_it_dies_and_goes_on_from_what_the_node_bears(steps):
    kill = ScenarioEvent(at=31.0, verb=Verb.KILL_FAILOVER, amount=steps, lasts=5.0)
    found, rehearsal = rehearsed(lost(verb=Verb.HANG), kill, lasts=400.0)
    assert found.violations == ()
    assert serving(found) == 3
    assert [one.hit for one in rehearsal.cluster.truth.orders if one.powered] == ["node-2"]


def test_while_it_is_stopped_nothing_happens():
    found, rehearsal = rehearsed(ScenarioEvent(at=5.0, verb=Verb.STOP_FAILOVER), lost())
    assert hits(rehearsal) == []
    assert serving(found) == 2


@pytest.mark.parametrize("verb", [Verb.BMC_DEAF, Verb.BMC_STUCK])
def test_nothing_is_forced_without_a_proof(verb):
    found, _ = rehearsed(ScenarioEvent(at=1.0, verb=verb, nodes=("node-2",)), lost(verb=Verb.PARTITION))
    assert found.violations == ()
    assert serving(found) == 3, "it runs on where it was"


def test_a_bmc_that_always_says_on_proves_nothing():
    found, _ = rehearsed(ScenarioEvent(at=1.0, verb=Verb.BMC_SAYS_ON, nodes=("node-2",)), lost(verb=Verb.PARTITION))
    assert found.violations == ()
    assert serving(found) == 2


def test_a_bmc_that_answers_again_is_believed():
    deaf = ScenarioEvent(at=1.0, verb=Verb.BMC_DEAF, nodes=("node-2",), lasts=60.0)
    found, rehearsal = rehearsed(deaf, lost(verb=Verb.HANG), lasts=400.0)
    assert found.violations == ()
    assert serving(found) == 3
    assert not rehearsal.cluster.machines["node-2"].is_powered


def test_by_a_bmc_of_another_machine_nothing_is_switched_off():
    wired = ScenarioEvent(at=0.0, verb=Verb.BMC_WIRED, nodes=("node-2",), other="node-3")
    found, rehearsal = rehearsed(wired, lost())
    assert found.violations == ()
    assert hits(rehearsal) == []
    assert rehearsal.cluster.machines["node-3"].is_powered


def test_a_slow_bmc_delays_only():
    late = ScenarioEvent(at=1.0, verb=Verb.BMC_LATE, nodes=("node-2",), amount=4.0)
    found, _ = rehearsed(late, lost())
    assert found.violations == ()
    assert serving(found) == 3


def test_a_machine_that_is_switched_on_again_is_in_service_again():
    found, rehearsal = rehearsed(lost(verb=Verb.HANG), power_on=True, lasts=400.0)
    assert found.violations == ()
    assert rehearsal.cluster.machines["node-2"].is_powered
    assert found.workloads[0].serving == 3


# -- how it is judged --------------------------------------------------------------------------------------------------


def judged(*orders, **failover):
    story = Story()
    story.more = {"orders": orders, "failover": FailoverSettings(**{"suspect_after": 20.0, **failover})}
    return story.broken()


def told(at=100.0, hit="n1", **more):
    usual = {
        "node": hit,
        "powered": True,
        "boot_id": f"boot-{hit}",
        "silence": 30.0,
        "away": (),
        "healthy": 9,
        "every": 10,
    }
    return FenceOrder(**{**usual, "at": at, "hit": hit, **more})


@pytest.mark.parametrize(
    ("orders", "broken"),
    [
        ([told()], []),
        ([told(silence=5.0)], ["TARGET"]),
        ([told(silence=5.0, powered=False)], []),
        ([told(node="n2")], ["TARGET"]),
        ([told(held=9.0)], ["TARGET"]),
        ([told(silence=12.0, suspect_after=10.0)], []),
        ([told(silence=30.0, suspect_after=60.0)], ["TARGET"]),
        ([told(forbidden=20.0)], ["TARGET"]),
        ([told(forbidden=20.0, powered=False)], []),
        ([told(forbidden=5.0)], []),
        ([told(healthy=5)], ["LIMITS"]),
        ([told(away=("n2",))], ["LIMITS"]),
        ([told(), told(at=200.0, healthy=5)], []),
        ([told(at=100.0 + n, hit=f"n{n}") for n in range(3)], []),
        ([told(at=100.0 + n, hit=f"n{n}") for n in range(4)], ["LIMITS"]),
    ],
)
def test_orders_are_judged(orders, broken):
    assert judged(*orders) == broken


def test_who_has_no_controller_is_not_judged():
    story = Story()
    story.more = {"orders": [told(silence=0.0)]}
    assert find_violations(story.run()) == []


def known(silence, **more):
    return MachineAtOrder(
        **{"powered": True, "boot_id": "boot", "silence": silence, "lately": silence, "domain": "x", **more}
    )


@pytest.mark.parametrize(
    ("domains", "more", "away"),
    [
        (("x", "x"), {}, ("b",)),
        (("x", "y"), {}, ()),
        (("", ""), {}, ()),
        (("x", "x"), {"emptied": True}, ("b",)),
        (("x", "x"), {"powered": False}, ("b",)),
        (("x", "x"), {"emptied": True, "powered": False}, ()),
        (("x", "x"), {"emptied": True, "boot_id": "the next"}, ()),
    ],
)
def test_which_machines_count_for_a_failure_domain(domains, more, away):
    machines = {"a": known(30.0, domain=domains[0]), "b": known(60.0, domain=domains[1], **more)}
    found = describe_order(9.0, "a", "a", machines=machines, suspect_after=20.0, before=[told(hit="b", boot_id="boot")])
    assert found.away == away


def test_what_is_known_of_an_order():
    machines = {
        "a": known(1.0, lately=30.0, held=5.0),
        "b": known(25.0, ready="boot-b"),
        "c": known(1.0, ready="boot"),
        "d": known(60.0, domain="y"),
        "e": known(25.0, ready="another"),
    }
    before = [told(hit=name) for name in "bce"]
    found = describe_order(9.0, "a", "a", machines=machines, suspect_after=20.0, before=before)
    assert (found.silence, found.held, found.every) == (30.0, 5.0, 5)
    assert found.away == ("b",), "the others were heard of since, or are there with another boot"
    assert found.healthy == 2, "neither d, which is long silent, nor b"


# -- how it is said ----------------------------------------------------------------------------------------------------

TEXT = """
apiVersion: lastcall.dev/v1alpha1
kind: Scenario
metadata: {name: x}
nodes: 3
controller: CONTROLLER
timeline:
  1s: SENTENCE
"""


def said(controller="lastcall", sentence="hang node-1"):
    return read_scenario(TEXT.replace("CONTROLLER", controller).replace("SENTENCE", sentence).encode(), "x")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("lastcall", FailoverSettings()),
        (
            "{replicas: 2, suspectAfter: 15s, powerOn: true}",
            FailoverSettings(replicas=2, suspect_after=15.0, power_on=True),
        ),
        ("{bmc: false}", FailoverSettings(bmc=False)),
        (
            "{minHealthy: 2, perDomain: 2, perHour: 4, domainLabel: rack, settle: 5s}",
            FailoverSettings(min_healthy="2", per_domain=2, per_hour=4, domain_label="rack", settle=5.0),
        ),
    ],
)
def test_a_controller_reads_back_as_itself(text, meant):
    found = said(text)
    assert found.failover == meant
    assert read_scenario(write_scenario(found).encode(), "x").failover == meant


@pytest.mark.parametrize(
    ("controller", "sentence", "wrong"),
    [
        ("nobody", "hang node-1", "controller"),
        ("{suspectAfter: 0s}", "hang node-1", "1s to 1h"),
        ("{replica: 2}", "hang node-1", "did you mean replicas"),
        ("null", "kill the failover controller", "needs controller: lastcall"),
        ("lastcall", "wire the BMC of node-1 to node-9", '"node-9" means no machine'),
    ],
)
def test_what_is_wrong_is_told(controller, sentence, wrong):
    with pytest.raises(InvalidInput) as error:
        said(controller, sentence)
    assert wrong in str(error.value)


def test_the_end_of_a_failover_is_demanded():
    """A mark on a node that is ready is something that is left."""

    async def run():
        rehearsal = Rehearsal(scenario(lasts=30.0), 1)
        await rehearsal.run()
        cluster = rehearsal.cluster
        assert rehearsal.run_record().left == []
        mark = {"metadata": {"annotations": {"lastcall.dev/failover": "{}"}}}
        await cluster.plane.admin.patch(NODES, "node-1", mark)
        return rehearsal.run_record().left

    assert virtual.run(run()) == ["node-1 is ready, and bears lastcall's mark"]
