"""A node's own last word in the API: when it is written, what it says, and who waits for it."""

import asyncio
from random import Random

import msgspec
import pytest
from support.agents import shutdown_records
from support.kube.api_servers import Wire
from support.virtual_time.worker import in_virtual_time

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_shutdown_recorder import (
    ASK_SECONDS,
    FIRST_SECONDS,
    LAST_SECONDS,
    REFUSED_SECONDS,
    SILENT_SECONDS,
    SOON,
    NodeShutdownRecorder,
    RecordingNodeFace,
)
from lastcall.adapters.kube.resources import DEFINITIONS, NODE_SHUTDOWNS
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.manifests import agent, resource_definitions
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.shutdown import MachineReturned, PodEnded, PodUnmounted, ShutdownCancelled
from lastcall.model.shutdown_fold import fold_events
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import UserInfo
from lastcall_lab.control_plane.identities import AGENT, cluster_roles

NAMED = NODE_SHUTDOWNS.with_shape(NodeShutdown)


class World:
    """A server, a node's record beside it, and what it has asked."""

    def __init__(self, clock):
        self.clock = clock
        self.user = AGENT
        self.server = ApiServer(clock, Random(1), authorization=AuthorizationMode.RBAC, roles=cluster_roles())
        self.admin = Client(InProcessTransport(self.server))
        self.wire = Wire(self)
        self.asked = []
        self.slow = 0.0
        client = Client(self.wire)
        self.clients = [client]
        self.records = NodeShutdownRecorder(lambda: self.clients, "node-1", clock)
        self.writing = asyncio.create_task(self.records.run())

    async def request(self, method, target, headers, body, **options):
        """As the node."""
        self.asked.append((self.clock.boottime(), method))
        await self.clock.sleep(self.slow)
        return await InProcessTransport(self.server, self.user).request(method, target, headers, body, **options)

    def hear(self, *events):
        for event in events:
            self.records.record_event(event)

    async def read_membership(self):
        return await self.admin.get(NAMED, "node-1")


def in_world(test):
    """With the kind defined."""

    async def scene():
        world = World(virtual.VirtualClock())
        await world.admin.create(DEFINITIONS, resource_definitions.node_shutdown_definition())
        try:
            await test(world)
        finally:
            await cancel_and_wait(world.writing)

    def run():
        virtual.run(scene())

    return run


def later(events, boot_id):
    """Another shutdown of the same node."""
    return [msgspec.structs.replace(events[0], id="later", boot_id=boot_id), *events[1:]]


@in_world
async def test_it_is_written_when_that_is_waited_for(world):
    first, *_ = shutdown_records.dozen()
    world.hear(first)
    await world.records.wait_until_written()
    assert world.clock.boottime() < SOON
    found = await world.read_membership()
    assert (found.spec.node_name, found.spec.boot_id, found.spec.id) == (first.node, first.boot_id, first.id)
    assert found.status.outcome.value == "Running"
    assert (found.status.deadline_time - found.status.start_time).total_seconds() == first.deadline - first.at


@in_world
async def test_nothing_is_asked_beyond_the_agents_role(world):
    """A server asks for the right to create besides, when what is applied is not there yet."""
    world.hear(*shutdown_records.dozen())
    await world.records.wait_until_written()
    later = NodeShutdownRecorder(lambda: world.clients, "node-1", world.clock)
    writing = asyncio.create_task(later.run())
    later.record_closed(fold_events(shutdown_records.dozen()))
    await later.wait_until_written()
    await cancel_and_wait(writing)
    verbs = {method.lower() for _, method in world.asked}
    [grant] = [one for one in agent.agent_grants() if one.resource == NODE_SHUTDOWNS.plural]
    assert (verbs, grant.verbs) == ({"get", "patch"}, ("get", "create", "patch"))


@in_world
async def test_in_the_end_it_says_whose_volumes_are_unmounted(world):
    events = shutdown_records.dozen()
    uids = [event.uid for event in events if isinstance(event, PodEnded)]
    world.hear(*events, PodUnmounted(at=events[-1].at, uid=uids[0]), PodUnmounted(at=events[-1].at, uid=uids[1]))
    await world.records.wait_until_written()
    found = await world.read_membership()
    assert found.ended_pod_uids == {uids[0], uids[1]}
    assert len(found.status.pods) == len({event.uid for event in events if hasattr(event, "uid")})


@in_world
async def test_what_nobody_waits_for_is_written_together(world):
    for event in shutdown_records.crowd():
        world.hear(event)
        await world.clock.sleep(0.01)
    await world.clock.sleep(2 * SOON)
    assert len(world.asked) <= world.clock.boottime() / SOON + 1
    assert (await world.read_membership()).status.outcome.value == "Completed"


@in_world
async def test_another_shutdown_takes_the_place_of_the_one_before(world):
    world.hear(*shutdown_records.dozen(), PodUnmounted(at=0, uid=shutdown_records.dozen()[3].uid))
    await world.records.wait_until_written()
    world.hear(*later(shutdown_records.cancelled(), "b2")[:1])
    await world.records.wait_until_written()
    found = await world.read_membership()
    assert (found.spec.id, found.spec.boot_id, found.status.pods, found.ended_pod_uids) == (
        "later",
        "b2",
        (),
        frozenset(),
    )


@in_world
async def test_what_was_called_off_while_no_agent_was_there_proves_nothing(world):
    world.hear(*shutdown_records.dozen()[:-1])
    await world.records.wait_until_written()
    after = NodeShutdownRecorder(lambda: world.clients, "node-1", world.clock)
    writing = asyncio.create_task(after.run())
    for event in shutdown_records.dozen():
        after.record_event(event)
    after.record_event(ShutdownCancelled(at=1e6, why="it was cancelled while no agent was running"))
    await after.wait_until_written()
    await cancel_and_wait(writing)
    assert (await world.read_membership()).status.outcome.value == "Cancelled"


@in_world
async def test_a_server_that_is_away_is_asked_again(world):
    await world.wire.down()
    world.hear(*shutdown_records.dozen())
    written = asyncio.ensure_future(world.records.wait_until_written())
    await world.clock.sleep(30)
    assert not written.done()
    await world.wire.up()
    await written
    assert (await world.read_membership()).status.outcome.value == "Completed"


@in_world
async def test_a_server_that_does_not_answer_is_asked_again(world):
    world.slow = 1e6
    world.hear(shutdown_records.dozen()[0])
    written = asyncio.ensure_future(world.records.wait_until_written())
    await world.clock.sleep(ASK_SECONDS + 0.5)
    world.slow = 0.0
    await written
    assert world.clock.boottime() < ASK_SECONDS + 5


@in_virtual_time
async def test_nobody_waits_where_the_kind_is_not_known():
    world = World(virtual.VirtualClock())
    world.hear(*shutdown_records.dozen())
    await world.records.wait_until_written()
    assert world.clock.boottime() == 0
    await cancel_and_wait(world.writing)


@in_world
async def test_a_record_that_the_server_refuses_holds_nobody_up(world):
    world.hear(msgspec.structs.replace(shutdown_records.dozen()[0], node=""))
    await world.records.wait_until_written()
    assert world.clock.boottime() < SOON


def nobody(name):
    """Who is known and has no right."""
    return UserInfo(name, groups=("system:authenticated",))


# -- without an answer, and after the boot -----------------------------------------------------------------------------


@in_world
async def test_a_refused_record_is_kept_told_and_written_when_the_right_is_granted(world):
    world.user = nobody("nobody")
    world.hear(*shutdown_records.dozen())
    await world.records.wait_until_written()
    [note] = world.records.take_notes()
    assert note.startswith("this node's shutdown is not recorded at the API server: ")
    assert "nodeshutdowns" in note
    await world.clock.sleep(REFUSED_SECONDS)
    assert world.records.take_notes() == [], "it is told once"
    world.user = AGENT
    await world.clock.sleep(REFUSED_SECONDS + 1)
    assert (await world.read_membership()).status.outcome.value == "Completed"
    asked = len(world.asked)
    await world.clock.sleep(2 * REFUSED_SECONDS)
    assert len(world.asked) == asked


@in_world
async def test_an_identity_that_is_refused_is_followed_by_the_next(world):
    world.clients.insert(0, Client(InProcessTransport(world.server, nobody("lost"))))
    world.hear(*shutdown_records.dozen())
    await world.records.wait_until_written()
    assert (await world.read_membership()).status.outcome.value == "Completed"
    assert world.records.take_notes() == []


@in_world
async def test_without_an_identity_nobody_waits_and_the_record_is_written_once_there_is_one(world):
    found, world.clients = world.clients, []
    world.hear(*shutdown_records.dozen())
    await world.records.wait_until_written()
    assert world.clock.boottime() == 0
    world.clients = found
    await world.clock.sleep(10)
    assert (await world.read_membership()).status.outcome.value == "Completed"


def returned(events):
    """After the next boot."""
    wall = events[0].wall + 300
    return fold_events([*events, MachineReturned(at=20.0, boot_id="b2", wall=wall)])


@in_world
async def test_what_could_not_be_written_is_written_after_the_boot(world):
    both = RecordingNodeFace(Face(world.clock), world.records)
    await world.wire.down()
    await both.clean_up(returned(shutdown_records.dozen()))
    await world.clock.sleep(30)
    await world.wire.up()
    await world.clock.sleep(5)
    found = await world.read_membership()
    assert (found.spec.boot_id, found.status.state.value) == (shutdown_records.BOOT, "Returned")
    assert found.status.returned_time is not None


@in_world
async def test_a_later_shutdown_in_the_api_is_not_replaced_by_an_older_journal(world):
    events = shutdown_records.dozen()
    world.hear(msgspec.structs.replace(events[0], id=f"3{events[0].id[1:]}"), *events[1:])
    await world.records.wait_until_written()
    after = NodeShutdownRecorder(lambda: world.clients, "node-1", world.clock)
    writing = asyncio.create_task(after.run())
    after.record_closed(returned(events))
    await after.wait_until_written()
    await cancel_and_wait(writing)
    assert (await world.read_membership()).status.returned_time is None


@in_world
async def test_a_shutdown_that_begins_takes_the_place_of_the_one_that_is_over(world):
    world.records.record_closed(returned(shutdown_records.dozen()))
    world.hear(later(shutdown_records.dozen(), "b3")[0])
    await world.records.wait_until_written()
    assert (await world.read_membership()).status.state.value == "Announced"


# -- the face ----------------------------------------------------------------------------------------------------------


class Face:
    """``ports.NodeFace``: each call takes its time, or fails."""

    def __init__(self, clock, *, slow=0.0, last=0.0, fails=False):
        self._clock, self._slow, self._last, self._fails = clock, slow, last, fails
        self.told = []

    def refuse_pods(self):
        self.told.append("refuse")

    async def begin_shutdown(self, deadline):
        await self._clock.sleep(self._slow)
        self.told.append(f"down {deadline:g}")
        if self._fails:
            raise LastcallError("not now")

    def expect_pods(self, namespaces):
        self.told.append(f"expect {sorted(namespaces)}")

    async def begin_pod(self, live, grace, until):
        self.told.append(f"begin {live} {grace:g} {until:g}")

    def take_notes(self):
        return ["a note"]

    async def clean_up(self, last):
        self.told.append("clean up")

    async def report_pod_ended(self, live, exit_codes):
        self.told.append(f"{live} {exit_codes}")
        return True

    async def report_finished(self):
        await self._clock.sleep(self._last)
        self.told.append("last word")

    async def mark_ready(self):
        self.told.append("back")


@in_world
async def test_the_face_is_told_and_the_record_is_written_beside(world):
    world.slow = 2.0
    face = Face(world.clock, slow=1.5)
    both = RecordingNodeFace(face, world.records)
    world.hear(shutdown_records.dozen()[0])
    both.refuse_pods()
    await both.begin_shutdown(7)
    assert world.clock.boottime() == pytest.approx(1.5)
    assert await both.report_pod_ended("pod", {}) is True
    world.slow = 0.2
    await world.clock.sleep(2)
    world.hear(*shutdown_records.dozen()[1:])
    await both.report_finished()
    assert (await world.read_membership()).status.outcome.value == "Completed"
    await both.mark_ready()
    assert face.told == ["refuse", "down 7", "pod {}", "last word", "back"]


@in_world
async def test_the_machine_waits_for_the_face_and_the_record_at_the_same_time(world):
    world.slow = 1.0
    both = RecordingNodeFace(Face(world.clock, last=1.5), world.records)
    world.hear(shutdown_records.dozen()[0])
    before = world.clock.boottime()
    await both.report_finished()
    assert world.clock.boottime() - before == pytest.approx(1.5)
    assert (await world.read_membership()).status.outcome.value == "Running"


@in_world
async def test_a_frozen_server_holds_up_neither_the_first_kill_nor_the_machine(world):
    """It has the time in which the pods end, and a moment more."""
    world.slow = 1e6
    both = RecordingNodeFace(Face(world.clock), world.records)
    world.hear(shutdown_records.dozen()[0])
    await both.begin_shutdown(60)
    assert world.clock.boottime() == 0.0
    await world.clock.sleep(20)
    world.hear(*shutdown_records.dozen()[1:])
    before = world.clock.boottime()
    await both.report_finished()
    assert world.clock.boottime() - before == pytest.approx(SILENT_SECONDS)


@in_world
async def test_the_first_record_follows_the_first_kills_and_not_the_next_event(world):
    both = RecordingNodeFace(Face(world.clock), world.records)
    world.hear(shutdown_records.dozen()[0])
    await both.begin_shutdown(60)
    await world.clock.sleep(2 * FIRST_SECONDS)
    assert (await world.read_membership()).status.outcome.value == "Running"


@in_world
async def test_the_last_word_waits_for_a_server_that_has_answered_so_far(world):
    world.slow = 0.2
    both = RecordingNodeFace(Face(world.clock), world.records)
    world.hear(shutdown_records.dozen()[0])
    await both.begin_shutdown(60)
    await world.clock.sleep(20)
    world.slow = 1.5
    world.hear(*shutdown_records.dozen()[1:])
    await both.report_finished()
    assert (await world.read_membership()).status.outcome.value == "Completed"
    world.slow = 1e6
    world.hear(shutdown_records.dozen()[0])
    before = world.clock.boottime()
    await both.report_finished()
    assert world.clock.boottime() - before == pytest.approx(LAST_SECONDS, abs=0.1), "and not for ever"


@in_world
async def test_what_the_face_cannot_do_is_told(world):
    world.hear(shutdown_records.dozen()[0])
    with pytest.raises(LastcallError, match="not now"):
        await RecordingNodeFace(Face(world.clock, fails=True), world.records).begin_shutdown(7)
