"""A node's own last word in the API: when it is written, what it says, and who waits for it."""

import asyncio
from random import Random

import msgspec
import pytest
from support import records
from support.kube_clusters import Wire
from support.virtual import in_virtual_time

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import DEFINITIONS, NODE_SHUTDOWNS
from lastcall.adapters.kube.shutdown_records import (
    ASK_SECONDS,
    FIRST_SECONDS,
    LAST_SECONDS,
    SOON,
    RecordedFace,
    ShutdownRecords,
)
from lastcall.aio import cancel
from lastcall.errors import LastcallError
from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.identities import AGENT
from lastcall.manifests import agent, definitions
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.shutdown import Cancelled, PodEnded, PodUnmounted, Released

NAMED = NODE_SHUTDOWNS.read_as(NodeShutdown)


class World:
    """A server, a node's record beside it, and what it has asked."""

    def __init__(self, clock):
        self.clock = clock
        self.server = ApiServer(clock, Random(1))
        self.admin = Client(InProcess(self.server))
        self.wire = Wire(self)
        self.asked = []
        self.slow = 0.0
        self.records = ShutdownRecords(Client(self.wire), "node-1", clock)
        self.writing = asyncio.create_task(self.records.run())

    async def request(self, method, target, headers, body, **options):
        """As the node."""
        self.asked.append((self.clock.boottime(), method))
        await self.clock.sleep(self.slow)
        return await InProcess(self.server, AGENT).request(method, target, headers, body, **options)

    def hear(self, *events):
        for event in events:
            self.records.hear(event)

    async def read(self):
        return await self.admin.get(NAMED, "node-1")


def in_world(test):
    """With the kind defined."""

    async def scene():
        world = World(virtual.VirtualClock())
        await world.admin.create(DEFINITIONS, definitions.node_shutdown())
        try:
            await test(world)
        finally:
            await cancel(world.writing)

    def run():
        virtual.run(scene())

    return run


def later(events, boot_id):
    """Another shutdown of the same node."""
    return [msgspec.structs.replace(events[0], id="later", boot_id=boot_id), *events[1:]]


@in_world
async def test_it_is_written_when_that_is_waited_for(world):
    first, *_ = records.dozen()
    world.hear(first)
    await world.records.written()
    assert world.clock.boottime() < SOON
    found = await world.read()
    assert (found.spec.node_name, found.spec.boot_id, found.spec.id) == (first.node, first.boot_id, first.id)
    assert found.status.outcome.value == "Running"
    assert (found.status.deadline_time - found.status.start_time).total_seconds() == first.deadline - first.at


@in_world
async def test_nothing_is_asked_beyond_the_agents_role(world):
    """A server asks for the right to create besides, when what is applied is not there yet."""
    world.hear(*records.dozen())
    await world.records.written()
    later = ShutdownRecords(Client(world.wire), "node-1", world.clock)
    writing = asyncio.create_task(later.run())
    later.hear(Cancelled(at=100, why="it was called off while no agent was running"))
    await later.written()
    await cancel(writing)
    verbs = {method.lower() for _, method in world.asked}
    [grant] = [one for one in agent.grants() if one.resource == NODE_SHUTDOWNS.plural]
    assert (verbs, grant.verbs) == ({"patch"}, ("create", "patch"))


@in_world
async def test_in_the_end_it_says_whose_volumes_are_unmounted(world):
    events = records.dozen()
    uids = [event.uid for event in events if isinstance(event, PodEnded)]
    world.hear(*events, PodUnmounted(at=events[-1].at, uid=uids[0]), PodUnmounted(at=events[-1].at, uid=uids[1]))
    await world.records.written()
    found = await world.read()
    assert found.gone == {uids[0], uids[1]}
    assert len(found.status.pods) == len({event.uid for event in events if hasattr(event, "uid")})


@in_world
async def test_what_nobody_waits_for_is_written_together(world):
    for event in records.crowd():
        world.hear(event)
        await world.clock.sleep(0.01)
    await world.clock.sleep(2 * SOON)
    assert len(world.asked) <= world.clock.boottime() / SOON + 1
    assert (await world.read()).status.outcome.value == "Completed"


@in_world
async def test_another_shutdown_takes_the_place_of_the_one_before(world):
    world.hear(*records.dozen(), PodUnmounted(at=0, uid=records.dozen()[3].uid))
    await world.records.written()
    world.hear(*later(records.cancelled(), "b2")[:1])
    await world.records.written()
    found = await world.read()
    assert (found.spec.id, found.spec.boot_id, found.status.pods, found.gone) == ("later", "b2", (), frozenset())


@in_world
async def test_what_was_called_off_while_no_agent_was_there_proves_nothing(world):
    world.hear(*records.dozen()[:-1])
    await world.records.written()
    after = ShutdownRecords(Client(world.wire), "node-1", world.clock)
    writing = asyncio.create_task(after.run())
    after.hear(Released(at=99, why="all phases are over"))
    after.hear(Cancelled(at=100, why="it was called off while no agent was running"))
    await after.written()
    await cancel(writing)
    assert (await world.read()).status.outcome.value == "Cancelled"


@in_world
async def test_a_server_that_is_away_is_asked_again(world):
    await world.wire.down()
    world.hear(*records.dozen())
    written = asyncio.ensure_future(world.records.written())
    await world.clock.sleep(30)
    assert not written.done()
    await world.wire.up()
    await written
    assert (await world.read()).status.outcome.value == "Completed"


@in_world
async def test_a_server_that_does_not_answer_is_asked_again(world):
    world.slow = 1e6
    world.hear(records.dozen()[0])
    written = asyncio.ensure_future(world.records.written())
    await world.clock.sleep(ASK_SECONDS + 0.5)
    world.slow = 0.0
    await written
    assert world.clock.boottime() < ASK_SECONDS + 5


@in_virtual_time
async def test_nobody_waits_where_the_kind_is_not_known():
    world = World(virtual.VirtualClock())
    world.hear(*records.dozen())
    await world.records.written()
    assert world.clock.boottime() == 0
    await cancel(world.writing)


@in_world
async def test_a_record_that_the_server_refuses_holds_nobody_up(world):
    world.hear(msgspec.structs.replace(records.dozen()[0], node=""))
    await world.records.written()
    assert world.clock.boottime() < SOON


# -- the face ----------------------------------------------------------------------------------------------------------


class Face:
    """``ports.NodeFace``: each call takes its time, or fails."""

    def __init__(self, clock, *, slow=0.0, fails=False):
        self._clock, self._slow, self._fails = clock, slow, fails
        self.told = []

    def refuse_pods(self):
        self.told.append("refuse")

    async def going_down(self, deadline):
        await self._clock.sleep(self._slow)
        self.told.append(f"down {deadline:g}")
        if self._fails:
            raise LastcallError("not now")

    async def pod_ended(self, live, exit_codes):
        self.told.append(f"{live} {exit_codes}")
        return True

    async def last_word(self):
        self.told.append("last word")

    async def back(self):
        self.told.append("back")


@in_world
async def test_the_face_is_told_and_the_record_is_written_beside(world):
    world.slow = 2.0
    face = Face(world.clock, slow=1.5)
    both = RecordedFace(face, world.records)
    world.hear(records.dozen()[0])
    both.refuse_pods()
    await both.going_down(7)
    assert world.clock.boottime() == pytest.approx(1.5)
    assert await both.pod_ended("pod", {}) is True
    world.slow = 0.2
    await world.clock.sleep(2)
    world.hear(*records.dozen()[1:])
    await both.last_word()
    assert (await world.read()).status.outcome.value == "Completed"
    await both.back()
    assert face.told == ["refuse", "down 7", "pod {}", "last word", "back"]


@in_world
async def test_a_frozen_server_holds_up_neither_the_first_kill_nor_the_machine(world):
    """It has the time in which the pods end, and a moment more."""
    world.slow = 1e6
    both = RecordedFace(Face(world.clock), world.records)
    world.hear(records.dozen()[0])
    await both.going_down(60)
    assert world.clock.boottime() == pytest.approx(FIRST_SECONDS)
    await world.clock.sleep(20)
    world.hear(*records.dozen()[1:])
    before = world.clock.boottime()
    await both.last_word()
    assert world.clock.boottime() - before == pytest.approx(FIRST_SECONDS)


@in_world
async def test_the_last_word_waits_for_a_server_that_has_answered_so_far(world):
    world.slow = 0.2
    both = RecordedFace(Face(world.clock), world.records)
    world.hear(records.dozen()[0])
    await both.going_down(60)
    await world.clock.sleep(20)
    world.slow = 1.5
    world.hear(*records.dozen()[1:])
    await both.last_word()
    assert (await world.read()).status.outcome.value == "Completed"
    world.slow = 1e6
    world.hear(records.dozen()[0])
    before = world.clock.boottime()
    await both.last_word()
    assert world.clock.boottime() - before == pytest.approx(LAST_SECONDS, abs=0.1), "and not for ever"


@in_world
async def test_what_the_face_cannot_do_is_told(world):
    world.hear(records.dozen()[0])
    with pytest.raises(LastcallError, match="not now"):
        await RecordedFace(Face(world.clock, fails=True), world.records).going_down(7)
