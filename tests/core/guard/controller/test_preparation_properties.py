"""Properties of preparations over any order of what clients, the application and leaders do.

The stories of chance do the same at random and at length; here a failure shrinks to the few events that matter.
"""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from support.guard.reviews import CONTROLLER, PERSON
from support.guard.stories import check_promises
from support.guard.world import GuardWorld

from lastcall_lab import virtual

ASK = st.tuples(
    st.just("ask"),
    st.sampled_from(["db-0", "db-1", "db-2"]),
    st.sampled_from([(PERSON, False), (PERSON, True), (CONTROLLER, False)]),
    st.sampled_from([0, 1]),
)
SLEEP = st.tuples(st.just("sleep"), st.sampled_from([0.02, 1, 6, 40, 1300]))
TROUBLE = st.tuples(st.sampled_from(["freeze", "short", "silent", "lose", "roll", "kill", "lead"]))
EVENTS = st.lists(ASK | SLEEP | TROUBLE, max_size=12)


async def do(world, event):
    application = world.application
    match event:
        case ("ask", name, (user, evict), guard):
            await world.ask(name, user=user, evict=evict, guard=guard)
        case ("sleep", seconds):
            await world.sleep(seconds)
        case ("freeze",):
            application.is_frozen = not application.is_frozen
        case ("short",):
            application.is_short = not application.is_short
        case ("silent",):
            application.is_silent = not application.is_silent
        case ("lose",):
            application.lose_preparations()
        case ("roll",):
            world.revision = "new"
        case ("kill",):
            await world.kill_leader()
        case ("lead",):
            await world.kill_leader()
            world.lead()
            await world.sleep(0.02)  # what is cancelled before it begins is never awaited


async def heal(world):
    world.application.is_frozen = world.application.is_short = world.application.is_silent = False
    await do(world, ("lead",))


def play(events, end):
    async def main():
        world = GuardWorld()
        await do(world, ("lead",))
        making = asyncio.ensure_future(world.run_stateful_set())
        for event in events:
            await do(world, event)
        await heal(world)
        await end(world)
        making.cancel()
        await world.close()
        return world

    return virtual.run(main())


async def ask_for_all(world):
    for name in ("db-0", "db-1", "db-2"):
        await world.ask_until_gone(name)
        await world.sleep(120)


@settings(max_examples=30)
@given(EVENTS)
def test_no_pod_goes_unprepared_and_none_is_held_for_ever(events):
    """``ask_until_gone`` fails after 400 refusals."""
    world = play(events, ask_for_all)
    check_promises(world, events)
    assert world.deletions <= len(world.went), "the guard deletes a pod once"


@settings(max_examples=30)
@given(EVENTS, st.sampled_from(["db-0", "db-2"]))
def test_what_nobody_asks_for_any_more_is_undone(events, name):
    async def give_up(world):
        await world.sleep(2600)
        await world.ask(name, evict=True)
        await world.sleep(1300)

    world = play(events, give_up)
    check_promises(world, events)
    assert world.application.moves == {}
    assert not [one for one in world.policy.status.pods if one.is_reserving]
