"""How many nodes were fenced within the last hour is known to whoever leads next: it stands on the Nodes."""

import json

import msgspec
import pytest
from support.failover.explain_command import OTHERS, WITH_UID, document, machine, policy
from support.failover.snapshots import lease
from support.failover.virtual_cluster import failing_over

from lastcall import names
from lastcall.adapters.kube.resources import NODES
from lastcall.failover.evidence import owner_mark
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.limits import fencing_history, policy_choice, storm_view
from lastcall.failover.limits.tracked_node import TrackedNode
from lastcall.model.observed import WatchedNode

WALL = 1_795_262_400.0
MARK = owner_mark.OwnerMark(boot_id="a", policy="p", began="2026-11-21T11:00:00Z", by="me", switched_off=True)
EARLIER = [{"bootID": "z", "at": "2026-11-21T11:30:00Z"}, {"bootID": "y", "at": "2026-11-21T10:59:00Z"}]
ENDED = {
    "the mark goes": (MARK, None, True),
    "another boot is marked": (MARK, owner_mark.OwnerMark(boot_id="b", policy="p", began="", by="me"), True),
    "the same boot's mark changes": (MARK, owner_mark.OwnerMark(boot_id="a", policy="p", began="", by="you"), False),
    "it was never told to go off": (owner_mark.OwnerMark(boot_id="a", policy="p", began="", by="me"), None, False),
    "there is no mark": (None, None, False),
}


@pytest.mark.parametrize("case", ENDED)
def test_when_a_fencing_is_over(case):
    there, wanted, over = ENDED[case]
    found = fencing_history.ended_fencing(owner_mark.encode_mark(there) if there else "", wanted)
    assert found == (there if over else None)
    assert fencing_history.ended_fencing("{", wanted) is None


def test_what_is_written_keeps_the_last_hour_and_each_boot_once():
    text = fencing_history.add_fencing(json.dumps(EARLIER), MARK, wall=WALL)
    assert json.loads(text) == [EARLIER[0], {"bootID": "a", "at": "2026-11-21T12:00:00Z"}]
    assert json.loads(fencing_history.add_fencing(text, MARK, wall=WALL + 60)) == [
        EARLIER[0],
        {"bootID": "a", "at": "2026-11-21T12:01:00Z"},
    ]
    assert json.loads(fencing_history.add_fencing("", MARK, wall=WALL)) == [
        {"bootID": "a", "at": "2026-11-21T12:00:00Z"}
    ]


BAD = ["x", "{}", "7", '[{"bootID": "a"}]', '[{"bootID": "a", "at": "yesterday"}]', "[" * 5000, '"\ud800"']


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_read_counts_as_one_that_is_over_just_now(text):
    (found,) = storm_view.past_fencings("n", text, now=50.0, wall=WALL)
    assert (found.node, found.began, found.open) == ("n", 50.0, False)
    assert len(json.loads(fencing_history.add_fencing(text, MARK, wall=WALL))) == 2


def test_the_times_are_ages_and_none_lies_in_the_future():
    text = json.dumps([*EARLIER, {"bootID": "f", "at": "2026-11-21T13:00:00Z"}])
    found = {one.boot_id: one.began for one in storm_view.past_fencings("n", text, now=5000.0, wall=WALL)}
    assert found == {"z": 3200.0, "f": 5000.0}


MARKED = 3000.0
"""Boottime at which the node was marked; now it is 9000, by both clocks."""
OURS = {"key": names.OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("taints", "boot", "counts"),
    [
        ([], "a", 9000.0),
        ([{**OURS, "timeAdded": "1970-01-01T01:40:00Z"}], "a", 6000.0),
        ([{**OURS, "timeAdded": "1970-01-01T00:00:01Z"}], "a", MARKED),
        ([{**OURS, "timeAdded": "1970-01-01T04:00:00Z"}], "a", 9000.0),
        ([{**OURS, "effect": "NoSchedule"}], "a", 9000.0),
        ([OURS], "a", 8000.0),
        ([], "b", 8000.0),
        ([{**OURS, "timeAdded": "1970-01-01T01:40:00Z"}], "b", 6000.0),
    ],
)
def test_an_open_fencing_counts_from_when_its_boot_was_over_and_until_then_as_one_of_now(taints, boot, counts):
    mark = owner_mark.new_mark(boot_id="a", policy="p", by="me", wall=MARKED)
    said = {
        "metadata": {"name": "n", "annotations": {names.FAILOVER_ANNOTATION: owner_mark.encode_mark(mark)}},
        "spec": {"taints": taints},
        "status": {"nodeInfo": {"bootID": boot}},
    }
    node = msgspec.convert(said, WatchedNode)
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node, 8000.0)
    knot = TrackedNode(node, seen, policy_choice.choose_policy({}, ()))
    (found,) = storm_view.list_fencings([knot], {}, {}, domain="zone", now=9000.0, wall=9000.0)
    assert (found.boot_id, found.open, found.began) == ("a", True, counts)


def test_a_taint_that_somebody_has_taken_away_was_there():
    mark = owner_mark.OwnerMark(boot_id="a", policy="p", began="1970-01-01T00:50:00Z", by="me", tainted=True)
    annotations = {names.FAILOVER_ANNOTATION: owner_mark.encode_mark(mark)}
    said = {"metadata": {"name": "n", "annotations": annotations}, "status": {"nodeInfo": {"bootID": "a"}}}
    node = msgspec.convert(said, WatchedNode)
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node, 8000.0)
    (found,) = storm_view.list_fencings(
        [TrackedNode(node, seen, policy_choice.choose_policy({}, ()))], {}, {}, domain="zone", now=9000.0, wall=9000.0
    )
    assert found.began == MARKED


def test_one_that_is_just_being_marked_counts_as_one_of_now():
    node = msgspec.convert({"metadata": {"name": "n"}, "status": {"nodeInfo": {"bootID": "a"}}}, WatchedNode)
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node, 10.0)
    claims = {"n": owner_mark.new_mark(boot_id="a", policy="p", by="me", wall=MARKED)}
    knot = TrackedNode(node, seen, policy_choice.choose_policy({}, ()))
    (found,) = storm_view.list_fencings([knot], claims, {}, domain="zone", now=9000.0, wall=9000.0)
    assert found.began == 9000.0


@pytest.mark.parametrize(
    ("taints", "boot", "refused"),
    [
        ([], "b-1", True),
        ([{**OURS, "timeAdded": "2026-11-21T11:30:00Z"}], "b-1", True),
        ([{**OURS, "timeAdded": "2026-11-21T10:30:00Z"}], "b-1", False),
        ([OURS], "b-1", False),
        ([], "b-2", False),
    ],
)
def test_explain_counts_in_the_same_way(taints, boot, refused):
    """Its mark is three hours old."""
    mark = owner_mark.OwnerMark(boot_id="b-1", policy="p", began="2026-11-21T09:00:00Z", by="me", switched_off=True)
    other = machine(
        "n5", "Unknown", *taints, boot=boot, annotations={names.FAILOVER_ANNOTATION: owner_mark.encode_mark(mark)}
    )
    limits = policy(limits={"minHealthy": 1, "perDomain": 9, "perHour": 1})
    found = document("n1", machine("n1"), lease("n1", 90), *OTHERS, WITH_UID, other, lease("n5", 300), limits)
    assert ("within the last hour" in json.dumps(found["inTheWay"])) is refused


@pytest.mark.parametrize("another", [True, False])
def test_it_is_the_same_for_who_has_led_and_for_who_leads_next(another):
    @failing_over(policy={"limits": {"minHealthy": 1, "settle": "5s", "perHour": 1}})
    async def scenario(world):
        first = world.start("a")
        node = world.place()
        world.nodes.pull(node)
        await world.until(lambda: world.place() not in (None, node), 180)
        await world.nodes.boot(node)
        await world.until(lambda: not world.mark(node), 240)
        if another:
            first.process.kill()
            world.start("b")
        next_one = world.place()
        world.nodes.pull(next_one)
        await world.cluster.settle(90)
        assert len(world.verbs("off")) == 1
        assert not world.mark(next_one)
        said = world.node(node)["metadata"]["annotations"]["lastcall.dev/fenced"]
        assert [one["bootID"] for one in json.loads(said)] == [f"boot-{node}-1"]

    scenario()


def test_who_finds_what_cannot_be_read_fences_nobody_and_says_so(caplog):
    @failing_over(policy={"limits": {"minHealthy": 1, "settle": "5s", "perHour": 1}})
    async def scenario(world):
        candidate = world.start()
        node = world.place()
        other = next(name for name in world.fences.bmcs if name != node)
        said = {"metadata": {"annotations": {"lastcall.dev/fenced": "yesterday"}}}
        await world.cluster.patch(NODES, other, said, namespace="")
        world.nodes.pull(node)
        await world.cluster.settle(120)
        assert world.verbs() == []
        assert "within the last hour" in " ".join(one.sentence for one in candidate.controller.reconcilers)
        said = {"metadata": {"annotations": {"lastcall.dev/fenced": None}}}
        await world.cluster.patch(NODES, other, said, namespace="")
        await world.until(lambda: world.place() not in (None, node), 180)
        told = [one.getMessage() for one in caplog.records if "lastcall.dev/fenced" in one.getMessage()]
        assert len(told) == 1
        assert f"of node {other} cannot be read" in told[0]

    caplog.set_level("WARNING")
    scenario()


@failing_over(policy={"limits": {"minHealthy": 1, "settle": "5s", "perHour": 1}})
async def test_a_node_that_is_deleted_while_it_is_fenced_counts_all_the_same(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.verbs("off"), 120)
    await world.cluster.delete(NODES, node, namespace="")
    await world.until(lambda: world.place() not in (None, node), 600)
    world.nodes.pull(world.place())
    await world.cluster.settle(90)
    assert len(world.verbs("off")) == 1
