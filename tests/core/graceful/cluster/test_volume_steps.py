"""The order of a volume's unmounting, and what proves that a step has worked."""

import pytest

from lastcall.graceful.cluster.volume_steps import NextStep, VolumeStep, next_step
from lastcall.model.node_volumes import CSI_PLUGIN, Filesystem, MountedVolume, VolumeState

S = VolumeStep
VOLUME = MountedVolume(uid="u1", name="pv-1", plugin=CSI_PLUGIN, path="/p", driver="d", handle="h")
SEEN = frozenset({Filesystem(device="8:16", root="/")})
INLINE = MountedVolume(uid="u1", name="token", plugin=CSI_PLUGIN, path="/p", driver="d", handle="h", inline=True)


@pytest.mark.parametrize(
    ("state", "answered", "step"),
    [
        ({"subpaths": ("/s",), "target": "/t", "stage": "/g", "has_stage": True}, set(), S.UNMOUNT_SUBPATHS),
        ({"target": "/t", "stage": "/g", "has_stage": True}, set(), S.UNPUBLISH),
        ({"stage": "/g", "has_stage": True}, set(), S.UNPUBLISH),
        ({"stage": "/g", "has_stage": True}, {S.UNPUBLISH}, S.UNSTAGE),
        ({"stage": "/g", "has_stage": True, "users": ("u2",)}, {S.UNPUBLISH}, S.FORGET),
        ({"target": "/t", "has_stage": True, "users": ("u2",)}, set(), S.UNPUBLISH),
        ({"has_stage": True}, {S.UNPUBLISH}, S.UNSTAGE),
        ({"has_stage": True}, {S.UNPUBLISH, S.UNSTAGE}, S.FORGET_ALL),
        ({}, {S.UNPUBLISH}, S.FORGET_ALL),
        ({"has_stage": True, "users": ("u2",)}, {S.UNPUBLISH, S.UNSTAGE}, S.FORGET),
    ],
)
def test_the_next_step(state, answered, step):
    assert next_step(VOLUME, VolumeState(filesystems=SEEN, **state), answered) == NextStep(step=step)


@pytest.mark.parametrize(("volume", "users"), [(VOLUME, ()), (VOLUME, ("u2",)), (INLINE, ())])
def test_a_volume_that_was_never_seen_mounted_is_not_taken_for_unmounted(volume, users):
    """The agent may live in a mount namespace that does not follow the host's."""
    now = next_step(volume, VolumeState(users=users), {S.UNPUBLISH, S.UNSTAGE})
    assert now.step is S.GIVE_UP
    assert "has not seen it mounted" in now.problem


def test_an_inline_volume_is_only_unpublished():
    assert next_step(INLINE, VolumeState(target="/t"), set()).step is S.UNPUBLISH
    assert next_step(INLINE, VolumeState(filesystems=SEEN), {S.UNPUBLISH}) == NextStep(step=S.FORGET)


@pytest.mark.parametrize(
    ("state", "answered", "step", "words"),
    [
        ({"target": "/t"}, {S.UNPUBLISH}, S.UNPUBLISH, "OK to NodeUnpublishVolume, but /t is still mounted"),
        ({"stage": "/g"}, {S.UNPUBLISH, S.UNSTAGE}, S.UNSTAGE, "OK to NodeUnstageVolume, but /g is still mounted"),
        ({"subpaths": ("/s",)}, {S.UNMOUNT_SUBPATHS}, S.UNMOUNT_SUBPATHS, "/s is still mounted"),
        ({"elsewhere": ("/mnt",)}, {S.UNPUBLISH, S.UNSTAGE}, S.WAIT, "also mounted at /mnt"),
    ],
)
def test_an_answer_proves_nothing(state, answered, step, words):
    now = next_step(VOLUME, VolumeState(**state), answered)
    assert now.step is step
    assert words in now.problem


def test_a_volume_of_another_kind_is_left_alone():
    volume = MountedVolume(uid="u1", name="share", plugin="kubernetes.io/nfs", path="/p", problem="cannot unmount it")
    now = next_step(volume, VolumeState(target="/t"), set())
    assert now == NextStep(step=S.GIVE_UP, problem="cannot unmount it")
