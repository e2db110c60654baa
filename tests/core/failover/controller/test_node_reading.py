"""The steps of one failover do not each read the Node and its Lease again; what has changed meanwhile is read at once."""

import msgspec
import pytest
from support.failover.cases import DB, MARK
from support.failover.small_cluster import World
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.resources import NODES
from lastcall.errors import NotFound, Unavailable
from lastcall.failover.controller.node_reading import is_reading_reusable
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import owner_mark
from lastcall.failover.reporting.controller_events import StepDecided
from lastcall.model.observed import WatchedLease


async def read(world):
    await world.subject()
    return await world.reading.read_live(world.seen)


async def test_it_serves_for_less_than_a_second_from_the_question_on():
    world = World()
    node = await read(world)
    world.clock.now += 0.6
    assert world.reading.reusable_node(world.seen) is node
    world.clock.now += 0.2
    assert world.reading.reusable_node(world.seen) is None


async def test_who_has_read_nothing_or_drops_it_has_nothing():
    world = World()
    assert world.reading.reusable_node(world.seen) is None
    await read(world)
    world.reading.drop()
    assert world.reading.reusable_node(world.seen) is None


async def test_a_sign_of_life_ends_it():
    world = World()
    await read(world)
    lease = {"metadata": {"name": "n", "resourceVersion": "2"}, "spec": {"renewTime": "r2"}}
    world.seen.observe_lease(msgspec.convert(lease, WatchedLease), world.clock.now)
    assert world.reading.reusable_node(world.seen) is None


async def test_a_newer_node_ends_it():
    world = World()
    await read(world)
    world.cluster.revision = 2
    world.seen.observe_node(await world.cluster.read_node("n"), world.clock.now)
    assert world.reading.reusable_node(world.seen) is None


async def test_a_history_that_went_back_ends_it():
    """Of a restored etcd the revisions are lower, so that nothing of it is newer than what was read."""
    world = World()
    world.cluster.revision = 9
    await read(world)
    world.cluster.revision = 3
    world.seen.observe_node(await world.cluster.read_node("n"), world.clock.now, since=9)
    assert world.seen.observed == world.clock.now
    assert world.reading.reusable_node(world.seen) is None


async def test_the_answer_to_our_own_write_is_the_node_and_no_younger():
    world = World()
    await read(world)
    world.clock.now += 0.5
    world.cluster.mark, world.cluster.revision = owner_mark.OwnerMark(**MARK_OF_MINE), 2
    written = await world.cluster.read_node("n")
    world.reading.note_write(written)
    assert world.reading.reusable_node(world.seen) is written
    world.seen.observe_node(written, world.clock.now)
    assert world.reading.reusable_node(world.seen) is written
    world.clock.now += 0.2
    assert world.reading.reusable_node(world.seen) is None


async def test_the_answer_to_a_write_alone_is_no_reading():
    world = World()
    world.reading.note_write(await world.cluster.read_node("n"))
    assert world.reading.reusable_node(world.seen) is None


async def test_a_node_that_is_gone_is_nothing_that_was_read():
    world = World()
    await read(world)

    async def gone(name):
        raise NotFound(f"node {name} not found")

    world.cluster.read_node = gone
    with pytest.raises(NotFound):
        await world.reading.read_live(world.seen)


MARK_OF_MINE = {"boot_id": "b1", "policy": "p", "began": "2026-01-01T00:00:00Z", "by": "me"}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (steps.Mark(mark=MARK, why="w"), True),
        (steps.TaintNode(mark=MARK, boot_id="a", why="w"), True),
        (steps.Delete(pods=(DB,), boot_id="a", why="w"), True),
        (steps.ForceDelete(pods=(DB,), boot_id="a", why="w"), True),
        (steps.Detach(attachments=(), boot_id="a", why="w"), True),
        (steps.AskPower(fencer="f", why="w"), False),
        (steps.SwitchOff(fencer="f", boot_id="a", within=1.0, why="w"), False),
        (steps.SwitchOn(fencer="f", within=1.0, why="w"), False),
        (steps.Untaint(mark=MARK, by_hand=False, why="w"), False),
        (steps.Unmark(why="w"), False),
        (steps.Wait("w"), False),
    ],
)
def test_after_which_steps_it_serves(step, expected):
    assert is_reading_reusable(step) is expected


# -- in a failover -----------------------------------------------------------------------------------------------------


def counted(world):
    """Each live read of a Node, among what has happened."""
    cluster = world.start().controller._cluster
    node = cluster.read_node

    async def counting(name):
        world.happened.append("node")
        return await node(name)

    cluster.read_node = counting


def order(world):
    """What was decided, and read, by the names of the steps."""
    return [
        one if isinstance(one, str) else type(one.step).__name__
        for one in world.happened
        if isinstance(one, StepDecided | str)
    ]


@failing_over(without=("podgc", "taint-eviction-controller"))
async def test_the_steps_that_follow_the_taint_share_what_was_read_for_it(world):
    counted(world)
    gone = world.place()
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    found = order(world)
    first = found.index("TaintNode")
    assert found[first : first + 3] == ["TaintNode", "node", "ForceDelete"]
    assert found[first - 1] == "node", "a word with a fence came before it"


@failing_over(without=("podgc", "taint-eviction-controller"))
async def test_who_changes_the_node_between_two_steps_is_heard(world):
    """The taint is taken away by a person as soon as it is there: no pod is removed."""
    world.start()
    cluster = world.candidates[0].controller._cluster
    change, delete, gone, tainted, deleted = cluster.update_node, cluster.delete_pod, world.place(), [], []

    async def changing(node, **changes):
        answer = await change(node, **changes)
        if changes.get("taints"):
            tainted.append(node.metadata.name)
            await world.cluster.patch(NODES, gone, {"spec": {"taints": []}}, namespace="")
            await world.cluster.clock.sleep(0.05)
        return answer

    async def deleting(namespace, name, **options):
        deleted.append(name)
        return await delete(namespace, name, **options)

    cluster.update_node, cluster.delete_pod = changing, deleting
    world.nodes.pull(gone)
    await world.until(lambda: tainted)
    await world.cluster.settle(5)
    assert deleted == []
    assert "somebody has taken lastcall's taint" in world.candidates[0].controller.reconcilers[0].sentence


@failing_over(without=("podgc", "taint-eviction-controller"))
async def test_after_a_step_that_has_failed_the_node_is_read_anew(world):
    counted(world)
    cluster = world.candidates[0].controller._cluster
    fail, gone = cluster.fail_pod, world.place()

    async def failing(pod, condition):
        cluster.fail_pod = fail
        world.happened.append("failed")
        raise Unavailable("no answer")

    cluster.fail_pod = failing
    world.nodes.pull(gone)
    await world.until(lambda: world.place() not in (None, gone))
    found = order(world)
    assert found[found.index("failed") + 1] == "node"
