"""A limit that keeps a lost node from being fenced is told in the status of its policy, and ``explain`` reads it there."""

import re
from dataclasses import replace

import pytest
from core.failover.controller.test_api_error_rates import sick
from core.failover.controller.test_blocked_nodes import WIDE, in_one_zone, spare
from support.failover.cases import BMC, DEAD, NOW, SUSPECT
from support.failover.explain_command import OTHERS, WITH_UID, document, machine, policy, run
from support.failover.snapshots import lease
from support.failover.virtual_cluster import failing_over
from support.lab.volume_kubelets import pod

from lastcall.adapters.kube.failover_cluster import COMPONENT, POLICIES
from lastcall.adapters.kube.resources import EVENTS, NODES, PODS
from lastcall.failover.decisions import decision_table
from lastcall.failover.limits.storms import Limit, LimitAnswer
from lastcall.failover.reporting import held_back
from lastcall.failover.reporting.held_back import LONGEST, MOST, HeldBack, parse_held_back, standing_limit
from lastcall.manifests.resource_definitions import fence_policy_definition
from lastcall.model.power import PowerState

WALL = 1_795_262_400.0
FIRST = "2026-11-21T12:00:00Z"
DOMAIN = LimitAnswer(
    allowed=False,
    why="in failure domain east node n1 is not back yet, and 1 may be away",
    limit=Limit.PER_DOMAIN,
    cause="in failure domain east node n1 is not back yet, and 1 may be away",
    blocked_by=("n1",),
)
API = LimitAnswer(
    allowed=False,
    why="5 requests to the API server failed in a row, the last one (GET /x: 500) 3s ago",
    limit=Limit.API_SERVER,
    cause="5 requests to the API server failed in a row, the last one (GET /x: 500)",
    not_before=NOW + 57,
)
HOURLY = LimitAnswer(
    allowed=False,
    why="3 nodes were fenced within the last hour, and 3 may be",
    limit=Limit.PER_HOUR,
    cause="3 nodes were fenced within the last hour, and 3 may be",
    blocked_by=("n1", "n2", "n3"),
    not_before=NOW + 600,
)


def of(*nodes_and_answers):
    found = HeldBack()
    for node, answer in nodes_and_answers:
        found.add_node(node, answer)
    return found


def told(*nodes_and_answers, before=(), now=NOW):
    return of(*nodes_and_answers).status_entries({"heldBack": [*before]}, now, WALL + now - NOW)


# -- what stands against one node --------------------------------------------------------------------------------------


def test_what_stands_against_a_lost_node():
    assert standing_limit(replace(SUSPECT, storm=DOMAIN), NOW, None) == DOMAIN
    assert standing_limit(SUSPECT, NOW, None).allowed
    assert standing_limit(SUSPECT, NOW, API) == API, "the case may be older than the trouble"
    assert standing_limit(replace(SUSPECT, verdict=DEAD), NOW, API).allowed, "nothing has to be switched off"
    assert standing_limit(replace(SUSPECT, devices=(replace(BMC, trouble="no Secret"),)), NOW, API).allowed
    assert standing_limit(replace(SUSPECT, heard=NOW - 1), NOW, API) is None, "it is not lost"
    assert standing_limit(replace(SUSPECT, policy=None), NOW, API) is None
    assert standing_limit(replace(SUSPECT, node=None), NOW, API) is None
    assert held_back.standing_limit_unread(API) == API
    assert held_back.standing_limit_unread(None).allowed


# -- the entries -------------------------------------------------------------------------------------------------------


def test_an_entry_names_the_limit_who_waits_who_fills_it_and_the_times():
    [entry] = told(("n5", HOURLY), ("n4", HOURLY))
    assert entry == {
        "reason": "PerHour",
        "message": "3 nodes were fenced within the last hour, and 3 may be",
        "nodes": ["n4", "n5"],
        "waiting": 2,
        "blockedBy": ["n1", "n2", "n3"],
        "since": FIRST,
        "notBefore": "2026-11-21T12:10:00Z",
    }
    assert "notBefore" not in told(("n4", DOMAIN))[0]


def test_the_condition_says_all_of_it_in_one_message():
    found = of(("n5", HOURLY), ("n4", DOMAIN))
    condition = found.allowed_condition(found.status_entries({}, NOW, WALL))
    assert (condition["type"], condition["status"], condition["reason"]) == ("FencingAllowed", "False", "PerHour")
    assert condition["message"] == (
        f"limit PerHour since {FIRST}: 3 nodes were fenced within the last hour, and 3 may be (nodes n1, n2, n3); node n5 waits,"
        f" not before 2026-11-21T12:10:00Z; limit PerDomain since {FIRST}: in failure domain east node n1 is not back yet, and 1"
        " may be away; node n4 waits"
    )


def test_the_condition_is_true_while_a_lost_node_is_not_held_back_and_unknown_without_one():
    assert HeldBack().allowed_condition([])["status"] == "Unknown"
    assert of(("n1", held_back.standing_limit_unread(None))).allowed_condition([])["status"] == "True"


def test_a_rack_of_lost_nodes_does_not_fill_the_policy():
    many = [f"n{number:03}" for number in range(200)]
    answer = replace(HOURLY, cause="x" * 5000, blocked_by=tuple(many))
    found = of(*((name, answer) for name in reversed(many)))
    [entry] = entries = found.status_entries({}, NOW, WALL)
    assert (len(entry["message"]), entry["nodes"], entry["blockedBy"]) == (LONGEST, many[:MOST], many[:MOST])
    assert entry["waiting"] == 200
    assert "n015 and 184 more wait" in found.allowed_condition(entries)["message"]
    assert len(found.allowed_condition(entries)["message"]) < 2000


def test_nor_do_all_limits_at_once_with_the_longest_names():
    """A status whose condition is longer than its definition allows is refused as a whole."""
    many = tuple("x" * 250 + f"{number:03}" for number in range(MOST))
    found = of(*((name, replace(DOMAIN, limit=limit, blocked_by=many)) for limit in Limit for name in many))
    [version] = fence_policy_definition()["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    most = status["conditions"]["items"]["properties"]["message"]["maxLength"]
    assert len(found.allowed_condition(found.status_entries({}, NOW, WALL))["message"]) == most


def test_what_is_told_is_written_anew_only_if_it_is_not_true_any_more():
    first = told(("n4", API))
    again = replace(API, not_before=NOW + 80, cause="7 requests to the API server failed in a row")
    assert told(("n4", again), before=first, now=NOW + 23) == first, "it goes on, and not before the time that was told"
    [later] = told(("n4", replace(again, not_before=NOW + 117)), before=first, now=NOW + 57)
    assert (later["since"], later["notBefore"]) == (FIRST, "2026-11-21T12:01:57Z")
    assert later["message"] == "7 requests to the API server failed in a row"


@pytest.mark.parametrize(
    "pairs",
    [
        [("n4", HOURLY), ("n5", HOURLY)],
        [("n4", replace(HOURLY, blocked_by=("n1", "n2", "n6")))],
        [("n4", replace(HOURLY, not_before=NOW + 60))],
        [("n4", replace(HOURLY, not_before=None))],
        [("n4", replace(HOURLY, cause="3 nodes were fenced within the last hour, and 2 may be"))],
    ],
    ids=["another waits", "another fills it", "it ends earlier", "its end is not known", "another value"],
)
def test_what_has_changed_is_told_with_the_time_since_when(pairs):
    first = told(("n4", HOURLY))
    [entry] = told(*pairs, before=first, now=NOW + 30)
    assert entry != first[0]
    assert entry["since"] == FIRST
    assert told(("n4", DOMAIN), before=first, now=NOW + 30)[0]["since"] == "2026-11-21T12:00:30Z", "another limit"


# -- in a cluster ------------------------------------------------------------------------------------------------------


def status(world):
    [found] = world.cluster.all(POLICIES)
    return found.get("status", {})


def condition(world):
    return next((one for one in status(world).get("conditions", ()) if one["type"] == "FencingAllowed"), {})


def counted(candidate):
    """The nodes that its metrics say are not fenced because of errors of the API server."""
    return candidate.counted["lastcall_failover_not_fenced_nodes", "APIServerFailing"]


def not_fenced(world):
    """The events that say so."""
    return [one for one in world.cluster.all(EVENTS) if one["reason"] == "NotFenced"]


def writes_of_status(world):
    """The times at which it is written, from now on."""
    written, cluster = [], world.candidates[0].controller._cluster
    tell = cluster.write_policy_status

    async def telling(name, status):
        written.append(world.cluster.clock.boottime())
        await tell(name, status)

    cluster.write_policy_status = telling
    return written


@failing_over(policy=WIDE)
async def test_the_policy_tells_of_a_full_domain_who_waits_and_who_fills_it(world):
    await in_one_zone(world)
    first, second = world.place(), spare(world)
    await world.cluster.create(PODS, pod("extra", nodeName=second))
    world.fences[first].lies = PowerState.ON
    world.start()
    await world.until(lambda: condition(world).get("status") == "Unknown", 30)
    world.nodes.silent.add(first)
    await world.until(lambda: world.verbs("off"), 60)
    await world.until(lambda: condition(world)["status"] == "True", 30)
    world.nodes.silent.add(second)
    await world.until(lambda: condition(world)["status"] == "False", 60)
    [entry] = status(world)["heldBack"]
    assert (entry["reason"], entry["nodes"], entry["blockedBy"]) == ("PerDomain", [second], [first])
    assert condition(world)["reason"] == "PerDomain"
    assert f"node {first} is not back yet, and 1 may be away" in condition(world)["message"]
    written = writes_of_status(world)
    world.fences[first].lies = None
    await world.cluster.settle(1)
    assert len(written) <= 1
    await world.until(lambda: second in {one.node for one in world.verbs("off")}, 120)
    await world.until(lambda: not status(world)["heldBack"], 60)
    assert condition(world)["status"] == "True"


@failing_over(policy={"limits": {**WIDE["limits"], "perHour": 1}})
async def test_a_limit_that_stands_for_long_is_written_once(world):
    first, second = world.place(), spare(world)
    await world.cluster.create(PODS, pod("extra", nodeName=second))
    world.start()
    world.nodes.pull(first)
    await world.until(lambda: world.place() not in (None, first), 60)
    world.nodes.silent.add(second)
    await world.until(lambda: condition(world).get("status") == "False", 60)
    [entry] = status(world)["heldBack"]
    assert (entry["reason"], entry["nodes"], entry["blockedBy"]) == ("PerHour", [second], [first])
    written = writes_of_status(world)
    await world.cluster.settle(300)
    assert not written
    assert status(world)["heldBack"] == [entry]


@pytest.mark.parametrize("telling", [True, False], ids=["", "the status cannot be written"])
def test_errors_of_the_api_server_are_told_while_nothing_can_be_read(telling):
    """No request about the lost node is answered; and that the status cannot be written changes nothing."""

    @failing_over(policy={"limits": {"minHealthy": 1, "settle": "60s"}})
    async def run(world):
        candidate = world.start()
        await world.cluster.settle(90)
        gone = world.place()

        def chosen(number, method, target):
            if "/status" in target and "fencepolicies" in target:
                return not telling
            return "watch=" not in target and COMPONENT not in target

        with pytest.MonkeyPatch.context() as patching:
            sick(patching, chosen)
            world.nodes.pull(gone)
            if telling:
                await world.until(lambda: condition(world).get("status") == "False", 60)
                [entry] = status(world)["heldBack"]
                assert (entry["reason"], entry["nodes"], entry["blockedBy"]) == ("APIServerFailing", [gone], [])
                assert re.fullmatch(
                    r".* requests to the API server failed.*, the last one \(\S+ /\S+: 500\)", entry["message"]
                )
                assert entry["notBefore"] > entry["since"]
                assert counted(candidate) == 1
                [event] = not_fenced(world)
                assert event["involvedObject"]["uid"] == world.node(gone)["metadata"]["uid"]
                assert event["message"].startswith(f"node {gone} is not fenced: ")
                written = writes_of_status(world)
                await world.cluster.settle(180)
                assert 1 <= len(written) <= 4, "as often as a time that was told has passed"
            else:
                await world.cluster.settle(60)
                assert condition(world)["status"] == "Unknown"
        if telling:
            await world.until(lambda: not status(world)["heldBack"], 120)
            assert counted(candidate) == 0
            assert len(not_fenced(world)) == 1, "once for each limit"
        await world.until(lambda: world.place() not in (None, gone), 120)

    run()


@failing_over
async def test_a_node_that_is_not_lost_is_not_told_of_when_the_api_server_fails(world):
    world.start()
    await world.cluster.settle(60)
    with pytest.MonkeyPatch.context() as patching:
        sick(patching, lambda number, method, target: COMPONENT not in target and "fencepolicies" not in target)
        await world.cluster.patch(
            NODES, world.place(), {"status": {"conditions": []}}, subresource="status", namespace=""
        )
        await world.cluster.settle(20)
    assert condition(world)["status"] == "Unknown"


@failing_over(policy={"limits": {"minHealthy": 1, "settle": "60s"}})
async def test_a_node_that_is_failed_over_waits_for_nothing_when_a_new_leader_cannot_read_it(world):
    candidate = world.start()
    await world.cluster.settle(5)
    gone = world.place()
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone), 120)
    candidate.process.kill()
    successor = world.start("other")
    await world.cluster.settle(5)
    with pytest.MonkeyPatch.context() as patching:
        sick(patching, lambda number, method, target: "watch=" not in target and COMPONENT not in target)
        await world.until(lambda: successor.controller.reconcilers, 120)
        await world.cluster.settle(30)
        assert successor.controller._cluster.api_failed_at
        assert condition(world)["status"] != "False"
        assert counted(successor) == 0


# -- explain -----------------------------------------------------------------------------------------------------------

LOST = (*OTHERS, WITH_UID, machine("n1", "Unknown"), lease("n1", 90))
ENTRY = {
    "reason": "APIServerFailing",
    "message": "5 requests to the API server failed in a row, the last one (GET /api/v1/nodes/n1: 500)",
    "nodes": [],
    "waiting": 1,
    "blockedBy": [],
    "since": "2026-11-21T11:58:00Z",
    "notBefore": "2026-11-21T12:00:30Z",
}


def saying(**changes):
    return policy() | {"status": {"heldBack": [ENTRY | changes]}}


def test_explain_says_for_how_long_and_why_nothing_is_fenced():
    found = document("n1", *LOST, saying())
    why = f"node n1 is not fenced: {ENTRY['message']}, since 2026-11-21T11:58:00Z"
    assert found["next"] == "nothing is done yet"
    assert found["inTheWay"][0] == {"why": why, "until": "2026-11-21T12:00:30Z"}
    assert f"  - {why} (until 2026-11-21T12:00:30Z)\n" in run("n1", *LOST, saying()).stdout


def test_explain_says_who_fills_a_limit_to_those_that_wait_for_it():
    limit = {"reason": "MinHealthy", "message": "2 of 5 nodes are healthy without it, and 3 have to be"}
    full = saying(**limit, nodes=["n1"], blockedBy=["n2", "n3"], notBefore=None)
    why = f"node n1 is not fenced: {limit['message']} (nodes n2, n3), since 2026-11-21T11:58:00Z"
    assert document("n1", *LOST, full)["inTheWay"][0] == {"why": why, "until": None}
    assert document("n1", *LOST, saying(**limit, nodes=["n9"])) == document("n1", *LOST, policy()), "others wait for it"


@pytest.mark.parametrize(
    "change", [{"reason": "New"}, {"message": 7}, {"nodes": [7]}, {"nodes": None}, {"blockedBy": "n2"}, {"since": None}]
)
def test_what_cannot_be_read_of_the_status_is_left_out(change):
    assert parse_held_back({"heldBack": [None, 7, ENTRY | change]}, node="n1", now=WALL) is None
    assert parse_held_back({"heldBack": ENTRY}, node="n1", now=WALL) is None


def test_what_nobody_has_renewed_is_not_told():
    """The controller that has written it leads no more, and none does."""
    assert document("n1", *LOST, saying(notBefore="2026-11-21T11:59:30Z"))["inTheWay"][0]["why"].startswith(
        f"node n1 is not fenced: {ENTRY['message']}"
    )
    assert document("n1", *LOST, saying(notBefore="2026-11-21T11:58:59Z")) == document("n1", *LOST, policy())


def test_a_mistake_of_ours_in_the_decision_about_one_node_holds_up_no_other(monkeypatch):
    """The status of its policy, which is made from the same decision, cannot be told then."""
    decide = decision_table.decide

    @failing_over
    async def run(world):
        first, bad, other = world.start(), world.place(), world.place("web")
        assert other != bad

        def decided(case, now):
            if case.name == bad:
                raise OverflowError("date value out of range")
            return decide(case, now)

        monkeypatch.setattr(decision_table, "decide", decided)
        world.nodes.pull(bad)
        await world.cluster.settle(60)
        assert not first.task.done()
        world.nodes.pull(other)
        await world.until(lambda: world.place("web") not in (None, other), 120)
        assert world.broken
        world.broken.clear()

    run()
