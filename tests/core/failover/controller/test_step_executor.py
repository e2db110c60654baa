"""What is made sure of before what cannot be undone, and how steps are carried out, against a cluster in little."""

import asyncio

import msgspec
import pytest
from support.failover.small_cluster import MARK, MINE, POLICY, World, pod

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
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.observed import WatchedLease

OFF = {"fencer": "f", "within": 30.0}


# -- made sure of ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("boot", "b2", "another boot id"),
        ("beat", "2", "heard of"),
        ("renewed", "r2", "heard of"),
        ("mark", owner_mark.OwnerMark(**{**MARK, "by": "you"}), "is not me's"),
        ("mark", None, "changed the mark or the taint"),
        ("mark", owner_mark.OwnerMark(**MARK), "changed the mark or the taint"),
        (
            "taints",
            [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}],
            "changed the mark or the taint",
        ),
    ],
)
async def test_what_has_changed_meanwhile_stops_it(what, value, why):
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.verify_live()
    setattr(world.cluster, what, value)
    world.cluster.revision = 2
    with pytest.raises(RefusedForSafety, match=why):
        await surety.verify_live()


async def test_what_is_older_than_what_was_said_before_stops_it():
    """An etcd that was restored from a backup shows the boot, the mark and the Lease as they were."""
    world = World()
    world.cluster.revision = 9
    await world.subject()
    surety = world.surety()
    await surety.verify_live()
    world.cluster.revision = 3
    for _ in range(2):
        with pytest.raises(RefusedForSafety, match="older than what it said before"):
            await surety.verify_live()


async def test_each_look_reads_the_lease_too_for_the_watch_may_be_silent():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.cluster.renewed = "r2"
    await surety.ensure()
    world.clock.now += 1.0
    with pytest.raises(RefusedForSafety, match="heard of"):
        await surety.ensure()


async def test_who_does_not_lead_any_more_does_nothing():
    world = World()
    world.leads.sure = False
    with pytest.raises(RefusedForSafety, match="does not lead"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_while_one_looks_again_the_others_go_on_for_the_rest_of_the_second():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.clock.now += 0.8
    answered = world.leads.answers = asyncio.Event()
    one = asyncio.create_task(surety.ensure())
    while world.leads.confirmed == 1:
        await asyncio.sleep(0)
    await surety.ensure()
    assert world.leads.confirmed == 2
    assert not one.done()
    world.clock.now += 0.6
    late = asyncio.create_task(surety.ensure())
    await asyncio.sleep(0)
    assert not late.done()
    answered.set()
    await asyncio.gather(one, late)


async def test_what_has_turned_out_not_to_be_so_holds_for_nobody():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.clock.now += 0.8
    world.leads.sure = False
    for _ in range(2):
        with pytest.raises(RefusedForSafety, match="does not lead"):
            await surety.ensure()


async def test_it_holds_for_most_of_a_second_and_not_beyond_leadership_or_a_sign_of_life():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.ensure()
    world.clock.now += 0.4
    await surety.ensure()
    assert world.leads.confirmed == 1
    world.clock.now += 0.4
    await surety.ensure()
    assert world.leads.confirmed == 2
    world.leads.leads = world.leads.sure = False
    with pytest.raises(RefusedForSafety, match="does not lead"):
        await surety.ensure()
    assert world.leads.confirmed == 3
    world.leads.leads = world.leads.sure = True
    await surety.ensure()
    world.seen.observe_lease(
        msgspec.convert({"metadata": {"name": "n"}, "spec": {"renewTime": "r7"}}, WatchedLease), 1.0
    )
    world.seen.heard = 101.0
    with pytest.raises(RefusedForSafety):
        await surety.ensure()


async def test_a_look_that_is_answered_too_late_is_none():
    """The node may have come back while the answer was on its way."""
    world = World()
    subject = await world.subject()
    node = world.cluster.read_node

    async def late(name):
        found = await node(name)
        world.clock.now += 6.0
        return found

    world.cluster.read_node = late
    with pytest.raises(RefusedForSafety, match="was answered after 6 s only"):
        await world.acting.carry_out(steps.SwitchOff(boot_id="b1", fencer="f", within=30.0, why="w"), subject)
    assert world.fences.fence.within == []


# -- orders to fences --------------------------------------------------------------------------------------------------


async def test_an_order_is_over_before_anybody_else_may_lead():
    world = World()
    world.leads.sole_until = 112.0
    await world.carry_out(steps.SwitchOff, **OFF)
    (within,) = world.fences.fence.within
    assert within < 12.0
    world.leads.sole_until = 101.2
    with pytest.raises(TimedOut):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert len(world.fences.fence.within) == 1


async def test_the_mark_must_say_before_that_it_may_be_switched_off():
    world = World()
    world.cluster.mark = owner_mark.OwnerMark(**MARK)
    with pytest.raises(RefusedForSafety, match="does not say"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_an_order_is_told_before_and_after():
    world = World()
    await world.carry_out(steps.SwitchOff, **OFF)
    assert [(one.verb, one.ended) for one in world.acted] == [("off", None), ("off", 100.0)]
    assert len(world.devices.fencer_states()[0].offs) == 1


def held_up(world, seconds):
    """Whoever tells of an order stands still for so long."""

    def tell(told):
        world.told.append(told)
        world.clock.now += seconds

    world.acting._orders._tell = tell


async def test_a_controller_that_stands_still_while_it_tells_of_an_order_does_not_give_it():
    """As one whose log is not read for a minute: somebody else leads by then."""
    world = World()
    world.leads.sole_until = 112.0
    held_up(world, 60)
    for step in (steps.SwitchOff(boot_id="b1", why="w", **OFF), steps.SwitchOn(why="w", **OFF)):
        with pytest.raises(TimedOut, match="too short"):
            await world.acting.carry_out(step, await world.subject())
    assert world.fences.fence.within == []
    assert [bool(one.error) for one in world.acted] == [False, True, False, True]


async def test_what_was_made_sure_of_before_it_was_told_for_long_holds_no_more():
    """The lease lasts, but the machine has had time to boot, and nobody has looked since."""
    world = World()
    held_up(world, 6)
    for step in (steps.SwitchOff(boot_id="b1", why="w", **OFF), steps.SwitchOn(why="w", **OFF)):
        with pytest.raises(RefusedForSafety, match="was last looked at 6 s ago"):
            await world.acting.carry_out(step, await world.subject())
    assert world.fences.fence.within == []
    assert [bool(one.error) for one in world.acted] == [False, True, False, True]


async def test_who_does_not_lead_any_more_marks_no_node():
    world = World()
    world.leads.sure = False
    with pytest.raises(RefusedForSafety, match="does not lead any more"):
        await world.acting.carry_out(steps.Mark(mark=owner_mark.OwnerMark(**MARK), why="w"), await world.subject())
    assert world.cluster.calls == []


@pytest.mark.parametrize("known", ["why", "late"])
async def test_a_fencer_that_would_strike_another_node_is_not_told(known):
    """As it is known right before, and as a live look finds."""
    world = World()
    setattr(world.rivals, known, "node n2, which is heard of, is the same machine")
    with pytest.raises(RefusedForSafety, match="node n2, which is heard of"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_another_node_that_is_heard_of_as_the_order_is_told_undoes_it():
    world = World()

    def tell(told):
        world.told.append(told)
        world.rivals.why = "node n2, which is heard of, is the same machine"

    world.acting._orders._tell = tell
    with pytest.raises(RefusedForSafety, match="node n2, which is heard of"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_another_node_that_is_heard_of_while_an_order_runs_ends_it():
    world = World()
    subject = await world.subject()
    refusal = ["", ""]
    surety = subject.safety_check(world.leads, world.clock, me="me", boot_id="b1", refusal=lambda: refusal[0])
    surety.recheck_cached()
    refusal[0] = "node n2, which is heard of, is the same machine"
    with pytest.raises(RefusedForSafety, match="node n2, which is heard of"):
        surety.recheck_cached()


async def test_what_was_asked_about_one_boot_is_forgotten_with_the_next():
    world = World()
    await world.carry_out(steps.SwitchOff, **OFF)
    node = (await world.cluster.read_node("n")).fence_node
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].offs
    assert world.fences.made == 1
    await world.devices.prepare_fences(node, POLICY, "b2")
    assert world.devices.fencer_states()[0].offs == ()


async def test_a_fencer_that_is_dead_for_weeks_fills_no_memory():
    world = World()
    await world.subject()
    world.fences.fence.switch_off = world.fences.fence.read_target = fails
    for _ in range(40):
        await world.devices.switch_off("f", 1)
        await world.devices.ask_target("f")
        world.clock.now += 1
    found = world.devices.fencer_states()[0]
    assert (len(found.offs), len(found.unanswered), found.forgotten) == (16, 16, 48)
    assert found.offs[-1].ended == world.clock.now - 1


async def fails(*_):
    raise Unavailable("no answer")


async def test_another_machine_is_another_target():
    world = World()
    subject = await world.subject()
    await world.acting.carry_out(steps.AskTarget(fencer="f", why="w"), subject)
    assert world.devices.fencer_states()[0].judgement
    await world.devices.prepare_fences(FenceNode(name="n", system_uuid="other"), POLICY, "b1")
    assert world.devices.fencer_states()[0].judgement is None


@pytest.mark.parametrize(("annotation", "made"), [("other", 1), ("bmc", 2)])
async def test_a_fence_is_made_anew_if_what_it_is_made_from_has_changed(annotation, made):
    """Other programs change their annotations of a Node in each round; nothing would ever come of a fencer then."""
    kind = {"program": "fence_ipmilan", "parametersFrom": {"ip": {"annotation": "bmc"}}}
    spec = {"fencers": [{"name": "f", "agent": kind}]}
    policy = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, FencePolicy)
    world, node = World(), FenceNode(name="n", system_uuid="1", annotations={"bmc": "b", "other": "1"})
    await world.devices.prepare_fences(node, policy, "b1")
    await world.devices.ask_target("f")
    changed = msgspec.structs.replace(node, annotations={**node.annotations, annotation: "2"})
    await world.devices.prepare_fences(changed, policy, "b1")
    assert (world.fences.made, world.devices.fencer_states()[0].judgement is None) == (made, made == 2)


async def test_a_fence_that_cannot_be_made_is_made_again_later():
    world = World()
    world.fences.error = Unavailable("no Secret")
    node = (await world.cluster.read_node("n")).fence_node
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].trouble == "no Secret"
    world.fences.error = None
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].trouble
    world.clock.now += 31
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].trouble == ""


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
