"""Volumes are detached by lastcall itself only where nobody else does it, and only those that were decided about."""

from support.failover_little import World

from lastcall.errors import Conflict
from lastcall.failover.deciding import steps
from lastcall.failover.deciding.case import AttachmentLeft

VOLUMES = (
    AttachmentLeft(uid="u1", name="va1", volume="v1"),
    AttachmentLeft(uid="u2", name="va2", volume="v2"),
    AttachmentLeft(uid="u3", name="va3", volume="v3"),
    AttachmentLeft(uid="u4", name="va4", volume="v4"),
)


async def test_only_the_attachment_that_was_decided_about_is_deleted_as_it_is_read_live():
    """The next attachment of the same volume to the same node has the same name."""
    world = World()
    world.cluster.attached = {"va1": ("u1", "71", "n"), "va2": ("new", "72", "n"), "va4": ("u4", "74", "elsewhere")}
    await world.carry_out(steps.Detach, attachments=VOLUMES)
    assert world.cluster.calls == [("detach", "u1", "va1", "71")]
    said = {one.name: one.error for one in world.acted}
    assert (said["va1"], said["va3"]) == ("", "")
    assert "another attachment" in said["va2"]
    assert "another attachment" in said["va4"]


async def test_an_attachment_that_has_changed_since_it_was_read_is_looked_at_again():
    world = World()
    world.cluster.attached = {"va1": ("u1", "71", "n")}
    world.cluster.trouble = {"u1": [Conflict("changed")]}
    await world.carry_out(steps.Detach, attachments=VOLUMES[:1])
    assert world.cluster.calls == []
    assert [one.error for one in world.acted] == ["changed"]
    assert list(world.refusals) == ["u1"], "the next round must not come at once, for ever"
