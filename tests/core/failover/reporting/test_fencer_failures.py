"""A fencer that fails is told in the status of its policy, and ``explain`` reads it there."""

from dataclasses import replace

import pytest
from support.failover.cases import BMC, DEAD, NOW, OTHER, SUSPECT
from support.failover.explain_command import OTHERS, WITH_UID, document, machine, policy, run
from support.failover.snapshots import lease
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.errors import Unavailable
from lastcall.failover.decisions.case import FencerCall
from lastcall.failover.evidence.facts import PowerSeen
from lastcall.failover.reporting import fencer_failures
from lastcall.failover.reporting.fencer_failures import MOST, PolicyFencers, list_failures
from lastcall.model.power import PowerState

WALL = 1_795_262_400.0


def tried(ended, error=""):
    return FencerCall(began=ended - 1, ended=ended, error=error)


def said(asked, power=PowerState.ON):
    return PowerSeen(boot_id="a", source="bmc", power=power, asked=asked, answered=asked)


def found(*devices, now=NOW, **changes):
    case = replace(SUSPECT, devices=devices, **changes)
    return [
        (one.name, one.reason.value, one.last_error, one.attempts, one.next_try)
        for one in list_failures(case, now, WALL)
    ]


NOT_OFF = "it accepted the order, and its status was not OFF in time"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"trouble": "no Secret", "again": NOW + 7}, [("bmc", "Unusable", "no Secret", 0, WALL + 7)]),
        ({"rival": "node n2 has it"}, [("bmc", "Refused", "node n2 has it", 0, None)]),
        ({"judgement": OTHER}, [("bmc", "Refused", "it is another machine", 0, None)]),
        (
            {"judgement": None, "judged": 0.0, "unanswered": (tried(NOW - 9, "no answer"), tried(NOW - 2, "deaf"))},
            [("bmc", "Failed", "deaf", 2, WALL + 28)],
        ),
        ({"unanswered": (tried(NOW - 2, "no answer"),)}, []),
        ({"judged": NOW - 5, "offs": (tried(NOW - 1),)}, []),
        (
            {"judged": NOW - 50, "offs": (tried(NOW - 40),), "answers": (said(NOW - 1),)},
            [("bmc", "Failed", NOT_OFF, 1, None)],
        ),
    ],
    ids=["never asked", "no secret", "rival", "another", "deaf", "has answered since", "under way", "not off"],
)
def test_what_fails_of_the_fencers_of_one_node(changes, expected):
    assert found(replace(BMC, **changes)) == expected
    assert found(replace(BMC, **changes), verdict=DEAD) == [], "it is not asked any more"


def test_a_rack_of_deaf_bmcs_does_not_fill_the_policy():
    [one] = list_failures(replace(SUSPECT, devices=(replace(BMC, trouble="x" * 5000),)), NOW, WALL)
    many = PolicyFencers(failing=[replace(one, node=f"n{number:03}") for number in reversed(range(200))])
    assert [entry["node"] for entry in many.status_entries] == [f"n{number:03}" for number in range(MOST)]
    assert len(str(many.status_entries)) < 30_000
    assert many.working_condition["message"].startswith("fencer bmc of node n000, and 199 more: xxx")
    assert len(many.working_condition["message"]) < 2000


def test_the_condition_is_unknown_while_no_fencer_is_asked():
    assert PolicyFencers().working_condition["status"] == "Unknown"
    assert PolicyFencers(answered=True).working_condition["status"] == "True"


@pytest.mark.parametrize("entry", [None, 7, {}, {"node": "n1"}, {"node": "n1", "attempts": "many"}])
def test_what_cannot_be_read_of_a_status_is_left_out(entry):
    assert fencer_failures.parse_failures({"fencers": [entry]}, node="n1", boot_id="b") == {}
    assert fencer_failures.parse_failures({"fencers": entry}, node="n1", boot_id="b") == {}


@pytest.mark.parametrize("deaf", [True, False], ids=["deaf", "no library"])
def test_the_policy_tells_of_a_fencer_that_fails(deaf):
    """The last error, the attempts and the next try; and no more writes than there is news; and what was told is taken back."""

    @failing_over
    async def run(world):
        world.start()
        gone = world.place()
        writes, tell = [], world.candidates[0].controller._cluster.write_policy_status

        async def telling(name, status):
            writes.append(world.cluster.clock.boottime())
            await tell(name, status)

        world.candidates[0].controller._cluster.write_policy_status = telling
        world.fences[gone].away = True
        make = world.fences.make_fences
        if not deaf:

            async def of(node, policy):
                raise Unavailable("No module named 'sushy'")

            world.fences.make_fences = of
        world.nodes.pull(gone)

        def status():
            [policy] = world.cluster.all(POLICIES)
            return policy.get("status", {})

        def entry():
            return next(iter(status().get("fencers", ())), {})

        def condition():
            return next((one for one in status().get("conditions", ()) if one["type"] == "FencersWorking"), {})

        await world.until(lambda: condition().get("status") == "Unknown", 30)
        error, reason, attempts = ("no answer", "Failed", 2) if deaf else ("No module named 'sushy'", "Unusable", 0)
        await world.until(lambda: "nextTry" in entry() and entry()["attempts"] == attempts, 120)
        [one] = status()["fencers"]
        assert (one["node"], one["name"], one["reason"], one["lastError"]) == (gone, "bmc", reason, error)
        assert (condition()["status"], condition()["reason"]) == ("False", reason)
        assert condition()["message"] == f"fencer bmc of node {gone}: {error}"
        before = len(writes)
        await world.cluster.settle(300)
        assert len(writes) - before <= 31, "about three for each round of 30 s"
        assert all(after - before >= 0.5 for before, after in zip(writes, writes[1:], strict=False))
        world.fences[gone].away = False
        world.fences.make_fences = make
        await world.until(lambda: world.place() not in (None, gone), 120)
        await world.until(lambda: not status()["fencers"], 60)
        assert condition()["status"] == "True"

    run()


def told(**changes):
    """A policy whose status tells of a fencer of n1 that fails."""
    entry = {
        "node": "n1",
        "name": "bmc",
        "bootID": "b-1",
        "reason": "Failed",
        "lastError": "no answer",
        "attempts": 2,
        "nextTry": "2026-11-21T12:00:20Z",
    }
    return policy() | {"status": {"fencers": [entry | changes]}}


LOST = (*OTHERS, WITH_UID, machine("n1", "Unknown"), lease("n1", 90))


def test_explain_says_the_last_error_and_the_next_try():
    assert document("n1", *LOST, policy())["next"] == "it is made sure now that its machine is off, by bmc"
    found = document("n1", *LOST, told())
    assert found["next"] == "nothing is done yet"
    why = "node n1 is not fenced: no fencer has switched it off (bmc: no answer, attempts: 2); tried again every 30s"
    assert found["inTheWay"][0] == {"why": why, "until": "2026-11-21T12:00:20Z"}
    assert "fencer bmc has failed: no answer, attempts: 2" in found["known"]
    assert "fencer bmc has failed: no answer, attempts: 2" in run("n1", *LOST, told()).stdout


def test_explain_says_what_failed_last_while_the_fencer_is_tried_again():
    found = document("n1", *LOST, told(nextTry="2026-11-21T11:59:58Z"))
    assert found["next"].startswith("bmc is asked which machine it stands for now: ")
    assert "fencer bmc has failed: no answer, attempts: 2" in found["known"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reason": "Unusable", "lastError": "No module named 'sushy'"}, "bmc cannot be used: No module named 'sushy'"),
        ({"reason": "Refused", "lastError": "it is another machine"}, "bmc is not to be used: it is another machine"),
    ],
)
def test_explain_says_why_a_fencer_is_not_used(changes, why):
    [found] = document("n1", *LOST, told(**changes))["inTheWay"]
    assert found == {"why": f"node n1 is not fenced: {why}", "until": "2026-11-21T12:00:20Z"}


@pytest.mark.parametrize("changes", [{"bootID": "b-0"}, {"node": "n2"}, {"name": "pdu"}, {"reason": "New"}])
def test_what_is_told_of_another_boot_is_not_said_of_this_one(changes):
    assert document("n1", *LOST, told(**changes)) == document("n1", *LOST, policy())
