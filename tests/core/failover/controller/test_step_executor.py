"""How steps are carried out on the Node and its pods, against a cluster in little."""

import asyncio

import msgspec
import pytest
from support.failover.small_cluster import MARK, MINE, World, pod

from lastcall.errors import (
    Conflict,
    NotFound,
    RefusedForSafety,
    RequestRefused,
    TimedOut,
    TooManyRequests,
    Unavailable,
)
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import owner_mark
from lastcall.failover.reporting.controller_events import PodsRemoved

# -- the Node ----------------------------------------------------------------------------------------------------------


async def test_the_taint_is_added_to_those_that_are_there_with_the_mark_that_says_whose_it_is():
    world = World()
    world.cluster.taints = ({"key": "theirs", "effect": "NoSchedule"},)
    world.cluster.revision = 7
    await world.carry_out(steps.TaintNode, mark=msgspec.structs.replace(MINE, tainted=True))
    ((_, revision, mark, taints),) = world.cluster.calls
    assert revision == "7"
    assert [taint.key for taint in taints] == ["theirs", "node.kubernetes.io/out-of-service"]
    assert taints[1].time_added
    assert owner_mark.parse_mark(mark).tainted


async def test_nobody_writes_over_the_mark_of_who_leads():
    world = World()
    world.cluster.mark = owner_mark.OwnerMark(**{**MARK, "by": "you"})
    world.leads.holder = "you"
    subject = await world.subject()
    with pytest.raises(RefusedForSafety, match="held by you"):
        await world.acting.carry_out(steps.Mark(mark=MINE, why="w"), subject)
    assert world.cluster.calls == []


async def test_who_does_not_lead_any_more_marks_no_node():
    world = World()
    world.leads.sure = False
    with pytest.raises(RefusedForSafety, match="does not lead any more"):
        await world.acting.carry_out(steps.Mark(mark=owner_mark.OwnerMark(**MARK), why="w"), await world.subject())
    assert world.cluster.calls == []


# -- pods --------------------------------------------------------------------------------------------------------------


async def test_a_pod_has_failed_before_it_goes_unless_it_had_finished():
    world = World()
    await world.carry_out(steps.ForceDelete, pod("a"), pod("b", phase="Succeeded"))
    assert [call for call in world.cluster.calls if call[1] == "a"] == [("fail", "a"), ("delete", "a", 0)]
    assert [call for call in world.cluster.calls if call[1] == "b"] == [("delete", "b", 0)]
    assert {one.uid for one in world.acted} == {"a", "b"}


@pytest.mark.parametrize("answer", [{"uid": "other"}, {"deletion_timestamp": None}])
async def test_a_pod_that_is_not_as_it_was_listed_stays(answer):
    world = World()
    world.cluster.trouble["answer"] = answer
    with pytest.raises(RefusedForSafety, match="not as it was"):
        await world.carry_out(steps.ForceDelete, pod("a"))
    assert world.cluster.calls == [("fail", "a")]


async def test_a_pod_that_is_not_terminating_yet_takes_no_more_calls_than_one_that_is():
    """One patch says that it has failed and why; who is the target of a disruption already is not said to be one again."""
    world = World()
    await world.carry_out(
        steps.ForceDelete,
        pod("a", terminating=False),
        pod("b", terminating=False, disrupted=True),
        pod("c", terminating=False, phase="Succeeded"),
    )
    reason = "DeletionByTaintManager"
    assert [call for call in world.cluster.calls if call[1] == "a"] == [("fail", "a", reason), ("delete", "a", 0)]
    assert [call for call in world.cluster.calls if call[1] == "b"] == [("fail", "b"), ("delete", "b", 0)]
    assert [call for call in world.cluster.calls if call[1] == "c"] == [("delete", "c", 0)]


async def test_what_was_removed_by_force_is_not_known_any_more_but_what_finalizers_keep_is():
    world = World()
    kept = msgspec.structs.replace(pod("b").metadata, finalizers=("example.com/x",))
    subject = await world.carry_out(steps.ForceDelete, pod("a"), msgspec.structs.replace(pod("b"), metadata=kept))
    assert [*subject.gathered.pods] == ["b"]


async def test_pods_are_deleted_with_their_own_grace_and_never_with_none():
    world = World()
    await world.carry_out(steps.Delete, pod("a", terminating=False), pod("b", grace=0, terminating=False))
    deletions = [call for call in world.cluster.calls if call[0] == "delete"]
    assert sorted(deletions) == [("delete", "a", None), ("delete", "b", 1)]


async def test_one_that_is_gone_is_done_and_one_that_is_refused_waits():
    world = World()
    world.cluster.trouble = {"a": [NotFound("gone")], "b": [RequestRefused("a webhook")], "c": [Conflict("another")]}
    await world.carry_out(steps.ForceDelete, pod("a"), pod("b"), pod("c"), pod("d"))
    assert list(world.refusals) == ["b", "c"], "as it is now it is seen in the next round, which must not come at once"
    assert all(one.again > world.clock.now for one in world.refusals.values())
    assert {one.uid: one.error for one in world.acted} == {"a": "", "b": "a webhook", "c": "another", "d": ""}
    assert [one.uid for one in world.acted if one.gone] == ["a"], "nobody counts as ours what others have removed"


async def test_a_pod_that_another_delete_removes_because_it_was_set_to_failed_was_removed_by_force():
    """Taint eviction deletes by the same taint with the pod's own grace, which a Failed pod does not get."""
    world = World()
    denied = NotFound('admission webhook "w" denied the request: not here')
    world.cluster.trouble = {"a": [None, NotFound("gone")], "b": [NotFound("gone")], "c": [None, denied]}
    subject = await world.carry_out(steps.ForceDelete, pod("a"), pod("b", phase="Succeeded"), pod("c"))
    assert {one.uid: (one.gone, one.error) for one in world.acted} == {
        "a": (False, ""),
        "b": (True, ""),
        "c": (False, str(denied)),
    }
    [removed] = [one for one in world.told if isinstance(one, PodsRemoved)]
    assert [uid for _, _, uid in removed.pods] == ["a"]
    assert "a" not in subject.gathered.pods


async def test_a_server_that_asks_for_a_pause_gets_it():
    world = World(room=2)
    busy = TooManyRequests("busy", code=429, details={"retryAfterSeconds": 7})
    world.cluster.trouble = {"a": [busy, None]}
    await world.carry_out(steps.ForceDelete, *(pod(uid, phase="Failed") for uid in "abcdef"))
    assert world.clock.now == 107.0
    assert len(world.cluster.calls) == 6
    assert world.cluster.most == 2


async def test_a_server_that_is_away_ends_the_step():
    world = World(room=1)
    world.cluster.trouble = {"a": [Unavailable("away")]}
    with pytest.raises(Unavailable):
        await world.carry_out(steps.ForceDelete, *(pod(uid, phase="Failed") for uid in "abc"))
    assert world.cluster.calls == []
    assert [(one.uid, one.error) for one in world.acted] == [("a", "away")], "it may have been carried out"


@pytest.mark.parametrize("failure", [Unavailable("away"), TimedOut("no answer")])
async def test_who_cannot_make_sure_ends_the_step_once_for_all_who_wait(failure):
    world, asked = World(), []

    async def away(name):
        asked.append(name)
        await asyncio.sleep(0)
        raise failure

    subject = await world.subject(*(pod(uid) for uid in "abcdef"))
    world.cluster.read_node = away
    with pytest.raises(type(failure)):
        await world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject)), subject)
    assert len(asked) == 1
    assert world.acted == [], "nothing was sent"
    assert world.cluster.calls == []


async def test_a_pod_is_the_target_of_a_disruption_before_it_is_deleted():
    """A Job that ignores disruptions does not count it; who is one already is not patched again."""
    world = World()
    await world.carry_out(steps.Delete, pod("a", terminating=False), pod("b", terminating=False, disrupted=True))
    reason = "DeletionByTaintManager"
    assert [call for call in world.cluster.calls if call[1] == "a"] == [("disrupt", "a", reason), ("delete", "a", None)]
    assert [call for call in world.cluster.calls if call[1] == "b"] == [("delete", "b", None)]


@pytest.mark.parametrize("failure", [Unavailable("away"), TimedOut("no answer")])
async def test_a_step_that_has_failed_leaves_nothing_that_goes_on(failure):
    """The server is back as soon as the first call has failed."""
    world = World(room=1)
    node = world.cluster.read_node

    async def away(name):
        world.cluster.read_node = node
        raise failure

    subject = await world.subject(pod("a"), pod("b"))
    world.cluster.read_node = away
    with pytest.raises(type(failure)):
        await world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject)), subject)
    await asyncio.sleep(0.01)
    assert world.cluster.calls == []


async def test_nor_does_a_mistake_of_ours_about_one_pod():
    """It is told when the calls for the others have come back: who goes on after the step does so also without leading."""
    world = World(room=1)
    subject = await world.subject(*(pod(name) for name in "abc"))
    delete = world.cluster.delete_pod

    async def deleted(namespace, name, **more):
        await asyncio.sleep(0.01)
        if name == "a":
            raise OverflowError("a mistake")
        return await delete(namespace, name, **more)

    world.cluster.delete_pod = deleted
    step = steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject))
    with pytest.raises(OverflowError):
        await world.acting.carry_out(step, subject)
    before = len(world.cluster.calls)
    assert [len(one.pods) for one in world.told if isinstance(one, PodsRemoved)] == [2]
    await asyncio.sleep(0.1)
    assert len(world.cluster.calls) == before
