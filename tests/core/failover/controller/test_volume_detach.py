"""Volumes are detached by lastcall itself only where nobody else does it, and only those that were decided about."""

import pytest
from support.failover.small_cluster import World, attachment

from lastcall.errors import Conflict, RefusedForSafety
from lastcall.failover.decisions import steps
from lastcall.failover.decisions.case import CaseAttachment

VOLUMES = (
    CaseAttachment(uid="u1", name="va1", volume="v1"),
    CaseAttachment(uid="u2", name="va2", volume="v2"),
    CaseAttachment(uid="u3", name="va3", volume="v3"),
    CaseAttachment(uid="u4", name="va4", volume="v4"),
)


def told(*revisions):
    """A world whose watch has shown the attachments, each with its resourceVersion."""
    world = World()
    world.watched = tuple(
        attachment(one.name, one.uid, revision, "n") for one, revision in zip(VOLUMES, revisions, strict=False)
    )
    return world


async def test_what_is_as_the_watch_has_shown_it_is_deleted_without_another_read():
    world = told("71", "72")
    world.cluster.attached = {"va1": ("u1", "71", "n"), "va2": ("u2", "72", "n")}
    await world.carry_out(steps.Detach, attachments=VOLUMES[:2])
    assert sorted(world.cluster.calls) == [("detach", "u1", "va1", "71"), ("detach", "u2", "va2", "72")]
    assert world.cluster.read == []


async def test_only_the_attachment_that_was_decided_about_is_deleted_as_it_is_read_live():
    """The next attachment of the same volume to the same node has the same name."""
    world = told("70", "70", "70", "70")
    world.cluster.attached = {"va1": ("u1", "71", "n"), "va2": ("new", "72", "n"), "va4": ("u4", "74", "elsewhere")}
    await world.carry_out(steps.Detach, attachments=VOLUMES)
    assert world.cluster.calls == [("detach", "u1", "va1", "71")]
    said = {one.name: one.error for one in world.acted}
    assert (said["va1"], said["va3"]) == ("", "")
    assert "another attachment" in said["va2"]
    assert "another attachment" in said["va4"]


async def test_a_sign_of_life_while_an_attachment_is_read_again_keeps_it():
    world = told("70")
    world.cluster.attached = {"va1": ("u1", "71", "n")}
    read = world.cluster.read_attachment

    async def alive(name):
        world.cluster.boot = "b2"
        world.clock.now += 5
        return await read(name)

    world.cluster.read_attachment = alive
    with pytest.raises(RefusedForSafety, match="another boot id"):
        await world.carry_out(steps.Detach, attachments=VOLUMES[:1])
    assert world.cluster.calls == []


async def test_an_attachment_that_has_changed_since_it_was_read_is_looked_at_again():
    world = told("71")
    world.cluster.attached = {"va1": ("u1", "71", "n")}
    world.cluster.trouble = {"u1": [Conflict("changed"), Conflict("changed")]}
    await world.carry_out(steps.Detach, attachments=VOLUMES[:1])
    assert world.cluster.calls == []
    assert [one.error for one in world.acted] == ["changed"]
    assert list(world.refusals) == ["u1"], "the next round must not come at once, for ever"
