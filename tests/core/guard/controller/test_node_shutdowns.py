"""What the guard does for the pods of a node that shuts down, and what their agent waits for: in virtual time."""

import asyncio
from datetime import UTC, datetime

import pytest
from support.guard.world import GuardWorld

from lastcall.guard.controller.guarded_pod_controller import LOOK_SECONDS
from lastcall.guard.decisions.node_shutdowns import LATE_SECONDS
from lastcall.guard.decisions.pod_conditions import NOT_REQUESTED, find_condition
from lastcall.guard.decisions.requesters import SHUTDOWN_SILENCE
from lastcall.model.guard_policy import PreparationState, RequestedRemoval
from lastcall_lab import virtual


def play(story, **world):
    async def main():
        found = GuardWorld(**world)
        found.lead()
        asyncio.ensure_future(found.run_stateful_set())
        await found.sleep(1)
        await story(found)
        await found.close()
        return found

    return virtual.run(main())


def reason_of(world, name):
    found = find_condition(world.pods[name])
    return (found.status, found.reason) if found else None


def test_every_guarded_pod_has_the_condition_and_a_new_one_gets_it():
    async def story(world):
        assert {reason_of(world, name) for name in world.pods} == {("False", NOT_REQUESTED)}
        world.make_pod("db-9")
        await world.sleep(LOOK_SECONDS + 1)
        assert reason_of(world, "db-9") == ("False", NOT_REQUESTED)

    play(story)


def test_a_policy_says_whether_it_can_be_followed():
    async def story(world):
        assert [one.status for one in world.policy.status.conditions] == ["True"]
        world.violations = ["spec.provider.redis.port: 0: must be at least 1"]
        await world.sleep(LOOK_SECONDS + 1)
        [condition] = world.policy.status.conditions
        assert (condition.status, condition.message) == ("False", "spec.provider.redis.port: 0: must be at least 1")

    play(story)


def test_pods_that_no_policy_guards_any_more_lose_it():
    async def story(world):
        world.put_policy(None)
        await world.sleep(LOOK_SECONDS + 1)
        assert {reason_of(world, name) for name in world.pods} == {None}

    play(story)


def test_a_pod_of_a_node_that_shuts_down_is_prepared_and_the_agent_waits_for_it():
    async def story(world):
        began = world.clock.boottime()
        [readiness] = await world.shut_down("db-0", seconds=120, limit=60)
        assert readiness.is_ready
        assert world.application.seconds < world.clock.boottime() - began < 20
        await world.sleep(300)
        assert world.entry("db-0").state is PreparationState.RELEASED

    world = play(story, max_unavailable=3)
    assert all(moved for _, _, moved, _ in world.went)
    assert not world.application.moves


def test_the_deadline_wins_and_the_agent_knows_why_the_application_was_not_ready():
    async def story(world):
        world.application.is_frozen = True
        [readiness] = await world.shut_down("db-0", seconds=120, limit=60)
        assert not readiness.is_ready
        assert "a replica does not follow" in readiness.message

    play(story, max_unavailable=3)


def test_a_cancelled_shutdown_is_undone_and_the_pod_stays():
    async def story(world):
        world.shutdowns.record("n1", datetime.fromtimestamp(world.clock.wall() + 120, UTC))
        await world.sleep(10)
        entry = world.entry("db-0")
        assert (entry.request, entry.requested_by) == (RequestedRemoval.NODE_SHUTDOWN, "system:node:n1")
        assert reason_of(world, "db-0") == ("True", "Ready")
        await world.sleep(60)
        assert reason_of(world, "db-0") == ("True", "Ready"), "as long as the shutdown lasts"
        world.shutdowns.record("n1", None)
        await world.sleep(SHUTDOWN_SILENCE + 10)
        assert world.entry("db-0").state is PreparationState.RELEASED
        await world.sleep(5)
        assert reason_of(world, "db-0") == ("False", NOT_REQUESTED)

    world = play(story, max_unavailable=3)
    assert not world.application.moves
    assert not world.went


def test_a_record_that_stays_of_a_machine_that_is_off_prepares_nothing_for_ever():
    async def story(world):
        world.shutdowns.record("n1", datetime.fromtimestamp(world.clock.wall() + 30, UTC))
        await world.sleep(30 + LATE_SECONDS + SHUTDOWN_SILENCE + 30)
        assert {one.state for one in world.policy.status.pods} == {PreparationState.RELEASED}

    play(story, max_unavailable=3)


def test_what_is_lost_again_is_withdrawn_at_once():
    """Also while the pods that were read are older than what was written to them."""

    async def story(world):
        world.shutdowns.record("n1", datetime.fromtimestamp(world.clock.wall() + 120, UTC))
        while reason_of(world, "db-0") != ("True", "Ready"):
            await world.sleep(0.05)
        world.application.lose_preparations()
        await world.sleep(3)
        assert reason_of(world, "db-0") == ("False", "Preparing")

    play(story, max_unavailable=3)


def test_other_nodes_are_left_alone():
    async def story(world):
        world.shutdowns.record("n2", datetime.fromtimestamp(world.clock.wall() + 120, UTC))
        await world.sleep(30)
        assert world.policy.status.pods == ()

    play(story)


def test_one_member_at_a_time_also_at_a_shutdown():
    async def story(world):
        world.shutdowns.record("n1", datetime.fromtimestamp(world.clock.wall() + 120, UTC))
        await world.sleep(20)
        assert [one.state for one in world.policy.status.pods] == [PreparationState.READY]

    play(story)


@pytest.mark.parametrize("evict", [True, False])
def test_what_a_person_has_requested_goes_on_as_his_request(evict):
    async def story(world):
        await world.ask("db-0", evict=evict)
        before = world.entry("db-0").requested_by
        world.shutdowns.record("n1", datetime.fromtimestamp(world.clock.wall() + 120, UTC))
        await world.sleep(40)
        assert world.entry("db-0").requested_by == before
        assert world.entry("db-0").request is not RequestedRemoval.NODE_SHUTDOWN

    play(story, max_unavailable=3)


def test_a_new_leader_goes_on():
    async def story(world):
        world.shutdowns.record("n1", datetime.fromtimestamp(world.clock.wall() + 120, UTC))
        await world.sleep(3)
        await world.kill_leader()
        await world.sleep(5)
        world.lead()
        await world.sleep(10)
        assert reason_of(world, "db-0") == ("True", "Ready")

    play(story, max_unavailable=3)
