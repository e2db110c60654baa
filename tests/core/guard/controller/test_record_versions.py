"""A newer version of the guard writes while this one leads: its steps are not undone, and the pod is held meanwhile."""

import asyncio

import pytest
from msgspec.structs import replace
from support.guard.world import GuardWorld

from lastcall.model.guard_policy import PreparationState
from lastcall_lab import virtual


def write_as_next(world, **fields):
    """The entry of db-0 as another leader writes it."""
    current = world.policy
    entry = replace(world.entry("db-0"), **fields)
    version = str(int(current.metadata.resource_version) + 1)
    meta = replace(current.metadata, resource_version=version)
    world.put_policy(replace(current, metadata=meta, status=replace(current.status, pods=current.put_entry(entry))))
    return entry


@pytest.mark.parametrize("call", ["health", "prepare", "progress"])
def test_a_step_that_was_under_way_writes_nothing_over_it(call):
    async def main():
        world = GuardWorld()
        world.application.seconds = 30.0
        world.lead()
        await world.ask("db-0")
        while call not in [one for _, one, _ in world.application.calls]:
            await world.clock.sleep(0.01)
        written = write_as_next(world, state=PreparationState.UNKNOWN)
        asked = len(world.application.calls)
        for _ in range(10):
            await world.sleep(40)
            assert not (await world.ask("db-0"))[0]
        assert replace(world.entry("db-0"), last_request_at=None) == replace(written, last_request_at=None)
        assert len(world.application.calls) == asked, "that version asks its application"

        write_as_next(world, state=PreparationState.PREPARING)
        asyncio.ensure_future(world.run_stateful_set())
        await world.ask_until_gone("db-0")
        assert [safe for _, _, safe, _ in world.went] == [True]
        await world.close()

    virtual.run(main())
