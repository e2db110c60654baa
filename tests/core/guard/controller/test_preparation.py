"""How a preparation goes, from the first refusal until the replacement is up: in virtual time."""

import asyncio

import pytest
from support.guard.reviews import CONTROLLER
from support.guard.world import GuardWorld

from lastcall.errors import InvalidInput, LastcallError
from lastcall.model.guard_policy import HoldLimitAction
from lastcall_lab import virtual


def play(story, **world):
    async def main():
        found = GuardWorld(**world)
        found.lead()
        asyncio.ensure_future(found.run_stateful_set())
        await story(found)
        await found.close()
        return found

    return virtual.run(main())


def calls(world, *names):
    return [call for _, call, _ in world.application.calls if call in names]


@pytest.mark.parametrize("evict", [False, True], ids=["delete", "evict"])
def test_a_pod_goes_when_its_application_is_ready_and_its_place_is_free_when_it_is_replaced(evict):
    async def story(world):
        allowed, message = await world.ask("db-0", evict=evict)
        assert not allowed
        assert "begins to prepare" in message
        assert world.entry("db-0").state.value == "Preparing"
        assert await world.ask_until_gone("db-0", evict=evict) >= 1
        await world.sleep(2)
        assert not (await world.ask("db-1", evict=evict))[0]
        assert world.entry("db-1") is None, "the place is still taken"
        await world.sleep(40)
        assert world.entry("db-0").state.value == "Released"
        await world.ask_until_gone("db-1", evict=evict)

    world = play(story)
    assert [moved for _, _, moved, _ in world.went] == [True, True]
    assert calls(world, "prepare", "release", "cancel") == ["prepare", "release", "prepare"]


def test_a_refusal_is_told_when_its_reason_is_another_one(caplog):
    """Whoever asks again and again does not fill the log."""
    caplog.set_level("INFO", logger="lastcall.guard.controller.review_service")

    async def story(world):
        for _ in range(20):
            await world.ask("db-0")
            await world.ask("db-1")
            await world.sleep(0.2)
        await world.ask_until_gone("db-0")

    play(story)
    told = [record.getMessage() for record in caplog.records if " is refused: " in record.getMessage()]
    of_first = [one for one in told if one.startswith("delete of pod shop/db-0 by ann")]
    assert "begins to prepare" in of_first[0]
    assert len(of_first) == len(set(of_first)) < 5
    assert [one.rpartition(": ")[0].count("is in front") for one in told if "shop/db-1 by ann" in one] == [0, 1]
    assert any("db-0 by ann is allowed" in record.getMessage() for record in caplog.records)


def test_two_requests_in_the_same_moment_at_two_replicas_never_both_get_a_place():
    async def story(world):
        await asyncio.gather(world.ask("db-0", guard=0), world.ask("db-1", guard=1))
        assert len(world.policy.status.pods) == 1
        await world.sleep(30)
        answers = await asyncio.gather(world.ask("db-0", guard=1), world.ask("db-1", guard=0))
        assert [allowed for allowed, _ in answers].count(True) == 1

    play(story)


def test_an_application_that_is_short_of_members_is_not_prepared_and_a_person_is_told():
    async def story(world):
        world.application.is_short = True
        await world.ask("db-0")
        await world.sleep(15)
        assert world.entry("db-0").state.value == "Unhealthy"
        _, message = await world.ask("db-0")
        assert "short of members already: 3 of 3 members" in message
        await world.ask("db-1")
        assert world.entry("db-1"), "who is not prepared has no place"
        world.application.is_short = False
        await world.ask_until_gone("db-0")

    world = play(story)
    assert "ApplicationUnhealthy" in [reason for reason, _ in world.events]
    assert all(moved for _, _, moved, _ in world.went)


def test_a_frozen_replica_holds_the_pod_and_a_person_is_told():
    async def story(world):
        world.application.is_frozen = True
        for _ in range(20):
            allowed, message = await world.ask("db-0")
            assert not allowed
            await world.sleep(5)
        assert "needs a person: a replica does not follow" in message
        world.application.is_frozen = False
        await world.ask_until_gone("db-0")

    world = play(story)
    assert [reason for reason, _ in world.events].count("PreparationStalled") == 1


def test_a_provider_that_does_not_answer_is_asked_again_and_a_ready_pod_is_held_meanwhile():
    async def story(world):
        await world.ask("db-0")
        await world.sleep(12)
        assert world.entry("db-0").state.value == "Ready"
        world.application.is_silent = True
        await world.sleep(15)
        allowed, message = await world.ask("db-0")
        assert not allowed
        assert "verified again" in message
        assert world.entry("db-0").unreachable_since
        world.application.is_silent = False
        await world.sleep(40)
        assert (await world.ask("db-0"))[0]

    play(story)


def test_what_the_leader_has_written_counts_for_its_next_answer():
    """Within the two seconds that a refusal may rest on what is remembered."""
    messages = []

    async def story(world):
        world.application.seconds = 5
        await world.ask("db-0")
        while not world.entry("db-0").ready_at:
            messages.append((await world.ask("db-0"))[1])
            await world.sleep(0.1)
        assert (await world.ask("db-0"))[0]

    play(story, forgets=True)
    assert len(messages) > 20, "it was asked all the time, so that something was remembered"


def test_a_pod_that_is_newer_than_what_is_remembered_does_not_count_as_gone():
    async def story(world):
        await world.ask("db-0")  # now its surroundings are remembered
        world.make_pod("db-3", is_ready=True)
        allowed, _ = await world.ask("db-3")
        assert not allowed
        await world.sleep(1)
        assert world.entry("db-3").state.value == "Preparing"

    world = play(story, max_unavailable=2)
    assert calls(world, "release") == []


def test_what_was_lost_is_prepared_again():
    async def story(world):
        await world.ask("db-0")
        await world.sleep(12)
        world.application.lose_preparations()
        await world.sleep(4)
        assert not (await world.ask("db-0"))[0]
        await world.ask_until_gone("db-0")

    world = play(story)
    assert calls(world, "prepare") == ["prepare", "prepare"]
    assert all(moved for _, _, moved, _ in world.went)


@pytest.mark.parametrize("evict", [False, True], ids=["delete", "evict"])
def test_a_request_that_is_given_up_is_undone(evict):
    async def story(world):
        await world.ask("db-0", evict=evict)
        await world.sleep(1000)
        assert world.entry("db-0").state.value == "Ready"
        await world.sleep(300)
        assert world.entry("db-0").state.value == "Released"
        await world.sleep(700)
        assert world.entry("db-0") is None

    world = play(story)
    assert calls(world, "cancel", "release") == ["cancel"]
    assert not world.went
    assert not world.application.moves


def test_a_long_preparation_that_a_person_asked_for_goes_on_without_another_request():
    async def story(world):
        world.application.seconds = 4000
        await world.ask("db-0")
        await world.sleep(4100)
        assert world.entry("db-0").state.value == "Ready"
        assert (await world.ask("db-0"))[0]

    play(story)


def test_a_controller_in_backoff_is_spared_the_wait_and_a_person_is_not_obeyed_later():
    async def story(world):
        world.revision = "new"
        await world.ask("db-2", user=CONTROLLER)
        await world.sleep(30)
        assert [by for *_, by in world.went] == ["nudge"]
        await world.sleep(60)
        await world.ask("db-1")
        await world.sleep(600)

    world = play(story)
    assert [by for *_, by in world.went] == ["nudge"]
    assert world.deletions == 1
    ready = next(
        at for at, call, _ in reversed(world.application.calls) if at < world.went[0][0] and call == "progress"
    )
    assert world.went[0][0] - ready < 5
    assert world.went[0][2]


def test_a_controller_that_does_not_want_it_any_more_is_not_obeyed():
    async def story(world):
        await world.ask("db-2", user=CONTROLLER)
        await world.sleep(600)

    assert play(story).went == []


def test_a_leader_that_is_killed_leaves_nothing_undone():
    async def story(world):
        await world.ask("db-0")
        await world.sleep(2)
        await world.kill_leader()
        await world.sleep(30)
        assert not (await world.ask("db-0"))[0], "nobody verifies"
        world.lead()
        await world.ask_until_gone("db-0")
        await world.kill_leader()
        await world.sleep(60)
        world.lead()
        await world.sleep(15)
        assert world.entry("db-0").state.value == "Released"

    world = play(story)
    assert all(moved for _, _, moved, _ in world.went)
    assert calls(world, "release") == ["release"]


def test_the_preparations_of_a_policy_that_is_deleted_are_undone():
    async def story(world):
        await world.ask("db-0")
        await world.sleep(12)
        world.put_policy(None)
        await world.sleep(2)
        assert (await world.ask("db-0"))[0], "nobody guards it any more"

    assert calls(play(story), "cancel") == ["cancel"]


def test_an_application_that_is_gone_is_not_waited_for():
    async def story(world):
        await world.ask("db-0")
        await world.ask_until_gone("db-0")
        world.replicas = 0
        world.application.is_silent = True
        world.pods.clear()
        await world.sleep(300)
        assert world.entry("db-0").state.value == "Released"
        assert "could not be released: no answer" in world.entry("db-0").message

    play(story)


def test_a_limit_that_allows_and_one_that_holds():
    async def story(world):
        world.application.is_frozen = True
        await world.ask("db-0")
        await world.sleep(1790)  # longer than a request lasts that nobody repeats
        assert not (await world.ask("db-0"))[0]
        await world.sleep(20)
        allowed, _ = await world.ask("db-0")
        assert allowed is (world.policy.spec.on_limit.value == "Allow")

    for action in HoldLimitAction:
        world = play(story, hold_limit="30m", on_limit=action)
        assert [reason for reason, _ in world.events].count("HoldLimitExceeded") == 1


def test_settings_that_the_provider_does_not_take_hold_the_pod_and_say_why():
    def refuse(policy):
        raise InvalidInput("GuardPolicy db", ["spec.provider.model.port: 0: must be 1 to 65535"])

    async def story(world):
        world.make_policy_provider = refuse
        for _ in range(30):
            await world.ask("db-0")
            await world.sleep(5)
        assert world.entry("db-0").state.value == "Stalled"
        assert "must be 1 to 65535" in (await world.ask("db-0"))[1]

    assert play(story).went == []


def test_what_a_dead_leader_began_is_undone_though_the_application_is_short_now():
    async def story(world):
        await world.ask("db-0", evict=True)
        while not world.application.moves:
            await world.sleep(0.01)
        await world.kill_leader()
        world.application.is_short = True
        world.lead()
        await world.sleep(1500)
        assert not world.application.moves

    play(story)


def test_two_pods_whose_application_was_short_do_not_take_one_place():
    async def story(world):
        world.application.is_short = True
        await world.ask("db-0")
        await world.sleep(3)
        await world.ask("db-1")
        assert world.entry("db-1")
        await world.sleep(3)
        world.application.is_short = False
        world.application.delay = 5  # both are asked about at the same time
        for _ in range(60):
            assert sum(one.is_reserving for one in world.policy.status.pods) <= 1
            await world.sleep(0.5)

    play(story)


def test_a_place_is_taken_until_the_application_is_healthy_again():
    async def story(world):
        await world.ask("db-0")
        await world.ask_until_gone("db-0")
        world.application.is_short = True
        await world.sleep(120)
        assert "is up, and the application is not healthy yet" in world.entry("db-0").message
        assert not (await world.ask("db-1"))[0]
        assert world.entry("db-1") is None
        world.application.is_short = False
        await world.ask_until_gone("db-1")

    play(story)


def test_a_readiness_counts_from_when_the_provider_was_asked():
    async def story(world):
        await world.ask("db-0")
        await world.sleep(8)
        world.application.delay = 9
        await world.sleep(15)
        asked = [at for at, call, _ in world.application.calls if call == "progress"]
        verified = world.entry("db-0").verified_at.timestamp() - world.clock.wall() + world.clock.boottime()
        assert min(abs(verified - at) for at in asked) < 0.001

    play(story)


def test_a_policy_holds_from_the_moment_it_is_there():
    """As one that is applied together with the change of its StatefulSet."""

    async def story(world):
        policy = world.policy
        world.put_policy(None)
        world.make_pod("db-9", is_ready=True)
        assert (await world.ask("db-9"))[0]
        world.put_policy(policy)
        assert not (await world.ask("db-0"))[0]

    play(story)


def test_an_entry_that_cannot_be_removed_is_tried_again_each_half_minute(caplog):
    """The webhook of another program refuses the write, for an hour."""
    caplog.set_level("INFO", logger="lastcall.guard.controller.preparation_worker")

    async def story(world):
        await world.ask_until_gone("db-0")
        await world.sleep(60)
        assert world.entry("db-0").state.value == "Released"
        remove = world.remove_entry

        async def refuse(policy, uid):
            raise LastcallError("denied the request")

        world.remove_entry = refuse
        await world.sleep(3600)
        world.remove_entry = remove
        await world.sleep(600)
        assert world.entry("db-0") is None

    play(story)
    assert 3 < sum(": forget" in record.getMessage() for record in caplog.records) < 150
