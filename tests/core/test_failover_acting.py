"""What is made sure of before what cannot be undone, and how steps are carried out, against a cluster in little."""

import asyncio
import contextlib

import msgspec
import pytest
from support.clocks import Hand

from lastcall.errors import Conflict, NotFound, NotNow, Refused, RefusedForSafety, TimedOut, Unavailable
from lastcall.failover import left, owner, steps
from lastcall.failover.acting import Acting, Subject
from lastcall.failover.case import Case, NodeNow
from lastcall.failover.devices import Devices
from lastcall.failover.gathering import Gathered
from lastcall.failover.happenings import Acted
from lastcall.failover.pool import Pool
from lastcall.failover.sightings import Sightings
from lastcall.failover.surety import Surety
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.observed import LiveNode, LivePod, WatchedLease
from lastcall.model.power import Power
from lastcall.ports import FenceAnswer, FenceTarget

MARK = {"boot_id": "b1", "policy": "p", "began": "2026-01-01T00:00:00Z", "by": "me"}
MINE = owner.OwnerMark(**MARK, fencer="f", switched_off=True)


class Leads:
    """``ports`` of leadership, said by a test."""

    def __init__(self):
        self.leads, self.sure, self.holder = True, True, "me"
        self.leading_until, self.sole_until = 1000.0, 1000.0
        self.confirmed = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def confirm(self):
        self.confirmed += 1
        await self.answers.wait()
        return self.sure


class Cluster:
    """One node ``n`` and some pods; ``calls`` are what was asked to be written."""

    def __init__(self):
        self.boot, self.beat, self.renewed, self.mark, self.revision = "b1", "1", "r1", MINE, 1
        self.calls, self.trouble = [], {}
        self.most = self.now = 0
        self.taints = ()

    async def node(self, name):
        said = {
            "metadata": {"name": name, "uid": "u", "resourceVersion": str(self.revision)},
            "spec": {"taints": list(self.taints)},
            "status": {
                "nodeInfo": {"bootID": self.boot, "systemUUID": "s"},
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": self.beat}],
            },
        }
        if self.mark:
            said["metadata"]["annotations"] = {"lastcall.dev/failover": owner.write(self.mark)}
        return msgspec.convert(said, LiveNode)

    async def lease(self, name):
        return msgspec.convert(
            {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"renewTime": self.renewed}}, WatchedLease
        )

    async def change_node(self, node, *, mark=None, fenced=None, taints=None):
        self.calls.append(("node", node.metadata.resource_version, mark, taints))
        self.fenced = fenced
        return node

    async def fail_pod(self, pod, condition=None):
        await self._call("fail", pod.metadata.uid)
        changes = self.trouble.get("answer", {})
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **changes))

    async def delete_pod(self, namespace, name, *, uid, grace):
        await self._call("delete", uid, grace)

    async def delete_attachment(self, name, *, uid):
        await self._call("detach", uid, name)

    async def _call(self, *what):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        if errors := self.trouble.get(what[1]):
            error = errors.pop(0)
            if error:
                raise error
        self.calls.append(what)


class Fence:
    """Accepts everything."""

    name = "f"

    def __init__(self):
        self.within = []

    async def target(self):
        return FenceTarget(system_uuid="1")

    async def status(self):
        return FenceAnswer(power=Power.OFF)

    async def off(self, within):
        self.within.append(within)

    on = off


class Fences:
    def __init__(self):
        self.fence, self.made, self.error = Fence(), 0, None

    async def of(self, node, policy):
        self.made += 1
        if self.error:
            raise self.error
        return [self.fence]


POLICY = msgspec.convert({"metadata": {"name": "p"}, "spec": {"fencers": [{"name": "f", "manual": {}}]}}, FencePolicy)


def pod(uid, phase="Running", grace=30, terminating=True):
    metadata = {"name": uid, "namespace": "d", "uid": uid}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"nodeName": "n", "terminationGracePeriodSeconds": grace}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, LivePod)


class World:
    """One node, and all that acts on it."""

    def __init__(self, room=50):
        self.clock, self.cluster, self.leads, self.fences = Hand(100.0), Cluster(), Leads(), Fences()
        self.told = []
        self.seen = Sightings("n", 0.0)
        self.devices = Devices(self.fences, self.clock)
        pool = Pool(room, self.clock)
        self.acting = Acting(self.cluster, self.leads, self.clock, pool, me="me", tell=self.told.append)

    async def subject(self, *pods):
        node = await self.cluster.node("n")
        self.seen.node(node, self.clock.now)
        self.seen.lease(await self.cluster.lease("n"), self.clock.now, first=True)
        await self.devices.prepare(node.fence_node, POLICY, "b1")
        now = NodeNow(boot_id="b1", ready="Unknown", taints=node.spec.taints, mark_text=node.mark)
        case = Case(
            name="n", me="me", leader="me", wall=0.0, node=now, policy=None, observed=0.0, heard=self.seen.heard
        )
        by_uid = {one.metadata.uid: one for one in pods}
        gathered = Gathered(case=case, node=node, pods=by_uid, attachments=(), facts=())
        self.refusals = {}
        return Subject(gathered=gathered, seen=self.seen, devices=self.devices, refusals=self.refusals)

    async def carry_out(self, kind, *pods, **more):
        subject = await self.subject(*pods)
        if pods:
            node = subject.gathered.node
            more["pods"] = tuple(left.pod(one, node, {}, {}, 0.0) for one in pods)
        with contextlib.suppress(KeyError):
            await self.acting.carry_out(kind(boot_id="b1", why="w", **more), subject)
        return subject

    def surety(self):
        node = NodeNow(boot_id="b1", ready="Unknown", mark_text=owner.write(MINE))
        rest = {"me": "me", "boot_id": "b1", "heard": self.seen.heard, "node": node}
        return Surety(self.cluster, self.leads, self.clock, self.seen, **rest)

    @property
    def acted(self):
        return [one for one in self.told if isinstance(one, Acted)]


OFF = {"fencer": "f", "within": 30.0}


# -- made sure of ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("boot", "b2", "another boot id"),
        ("beat", "2", "heard of"),
        ("renewed", "r2", "heard of"),
        ("mark", owner.OwnerMark(**{**MARK, "by": "you"}), "is not me's"),
        ("mark", None, "changed the mark or the taint"),
        ("mark", owner.OwnerMark(**MARK), "changed the mark or the taint"),
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
    await surety.look()
    setattr(world.cluster, what, value)
    world.cluster.revision = 2
    with pytest.raises(RefusedForSafety, match=why):
        await surety.look()


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
    await surety.check()
    world.clock.now += 0.8
    answered = world.leads.answers = asyncio.Event()
    one = asyncio.create_task(surety.check())
    await asyncio.sleep(0)
    await surety.check()
    assert world.leads.confirmed == 2
    assert not one.done()
    world.clock.now += 0.6
    late = asyncio.create_task(surety.check())
    await asyncio.sleep(0)
    assert not late.done()
    answered.set()
    await asyncio.gather(one, late)


async def test_what_has_turned_out_not_to_be_so_holds_for_nobody():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.check()
    world.clock.now += 0.8
    world.leads.sure = False
    for _ in range(2):
        with pytest.raises(RefusedForSafety, match="does not lead"):
            await surety.check()


async def test_it_holds_for_most_of_a_second_and_not_beyond_leadership_or_a_sign_of_life():
    world = World()
    await world.subject()
    surety = world.surety()
    await surety.check()
    world.clock.now += 0.4
    await surety.check()
    assert world.leads.confirmed == 1
    world.clock.now += 0.4
    await surety.check()
    assert world.leads.confirmed == 2
    world.leads.leads = False
    await surety.check()
    assert world.leads.confirmed == 3
    world.leads.leads = True
    world.seen.lease(msgspec.convert({"metadata": {"name": "n"}, "spec": {"renewTime": "r7"}}, WatchedLease), 1.0)
    world.seen.heard = 101.0
    with pytest.raises(RefusedForSafety):
        await surety.check()


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
    world.cluster.mark = owner.OwnerMark(**MARK)
    with pytest.raises(RefusedForSafety, match="does not say"):
        await world.carry_out(steps.SwitchOff, **OFF)
    assert world.fences.fence.within == []


async def test_an_order_is_told_before_and_after():
    world = World()
    await world.carry_out(steps.SwitchOff, **OFF)
    assert [(one.verb, one.ended) for one in world.acted] == [("off", None), ("off", 100.0)]
    assert len(world.devices.facts()[0].offs) == 1


async def test_a_controller_that_stands_still_while_it_tells_of_an_order_does_not_give_it():
    """As one whose log is not read for a minute: somebody else leads by then."""
    world = World()
    world.leads.sole_until = 112.0

    def held_up(told):
        world.told.append(told)
        world.clock.now += 60

    world.acting._tell = held_up
    for step in (steps.SwitchOff(boot_id="b1", why="w", **OFF), steps.SwitchOn(why="w", **OFF)):
        with pytest.raises(TimedOut, match="too short"):
            await world.acting.carry_out(step, await world.subject())
    assert world.fences.fence.within == []
    assert [bool(one.error) for one in world.acted] == [False, True, False, True]


async def test_what_was_asked_about_one_boot_is_forgotten_with_the_next():
    world = World()
    await world.carry_out(steps.SwitchOff, **OFF)
    node = (await world.cluster.node("n")).fence_node
    await world.devices.prepare(node, POLICY, "b1")
    assert world.devices.facts()[0].offs
    assert world.fences.made == 1
    await world.devices.prepare(node, POLICY, "b2")
    assert world.devices.facts()[0].offs == ()


async def test_another_machine_is_another_target():
    world = World()
    subject = await world.subject()
    await world.acting.carry_out(steps.AskTarget(fencer="f", why="w"), subject)
    assert world.devices.facts()[0].judgement
    await world.devices.prepare(FenceNode(name="n", system_uuid="other"), POLICY, "b1")
    assert world.devices.facts()[0].judgement is None


async def test_a_fence_that_cannot_be_made_is_made_again_later():
    world = World()
    world.fences.error = Unavailable("no Secret")
    node = (await world.cluster.node("n")).fence_node
    await world.devices.prepare(node, POLICY, "b1")
    assert world.devices.facts()[0].trouble == "no Secret"
    world.fences.error = None
    await world.devices.prepare(node, POLICY, "b1")
    assert world.devices.facts()[0].trouble
    world.clock.now += 31
    await world.devices.prepare(node, POLICY, "b1")
    assert world.devices.facts()[0].trouble == ""


# -- the Node ----------------------------------------------------------------------------------------------------------


async def test_the_taint_is_added_to_those_that_are_there_with_the_mark_that_says_whose_it_is():
    world = World()
    world.cluster.taints = ({"key": "theirs", "effect": "NoSchedule"},)
    world.cluster.revision = 7
    await world.carry_out(steps.Taint, mark=msgspec.structs.replace(MINE, tainted=True))
    ((_, revision, mark, taints),) = world.cluster.calls
    assert revision == "7"
    assert [taint.key for taint in taints] == ["theirs", "node.kubernetes.io/out-of-service"]
    assert taints[1].time_added
    assert owner.read(mark).tainted


async def test_nobody_writes_over_the_mark_of_who_leads():
    world = World()
    world.cluster.mark = owner.OwnerMark(**{**MARK, "by": "you"})
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


async def test_pods_are_deleted_with_their_own_grace_and_never_with_none():
    world = World()
    await world.carry_out(steps.Delete, pod("a", terminating=False), pod("b", grace=0, terminating=False))
    assert sorted(world.cluster.calls) == [("delete", "a", None), ("delete", "b", 1)]


async def test_one_that_is_gone_is_done_and_one_that_is_refused_waits():
    world = World()
    world.cluster.trouble = {"a": [NotFound("gone")], "b": [Refused("a webhook")], "c": [Conflict("another")]}
    await world.carry_out(steps.ForceDelete, pod("a"), pod("b"), pod("c"), pod("d"))
    assert list(world.refusals) == ["b"]
    assert world.refusals["b"].again > world.clock.now
    assert {one.uid: one.error for one in world.acted} == {"a": "", "b": "a webhook", "c": "", "d": ""}


async def test_a_server_that_asks_for_a_pause_gets_it():
    world = World(room=2)
    busy = NotNow("busy", code=429, details={"retryAfterSeconds": 7})
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
