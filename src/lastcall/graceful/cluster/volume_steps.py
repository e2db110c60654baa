"""Which step unmounts a volume next, in the order of the kubelet (pure).

A kubelet unmounts subPath mounts, calls NodeUnpublishVolume, calls NodeUnstageVolume when no other pod of the node uses
the volume, and removes its directories. The directories go last, so an agent that is killed in between finds the volume
again and repeats its calls, which drivers have to accept. What a driver answers proves nothing: the mount table does.
"""

from collections.abc import Set as AbstractSet
from enum import Enum

from lastcall.model.base import Facts
from lastcall.model.node_volumes import MountedVolume, VolumeState


class VolumeStep(Enum):
    """A step on a volume."""

    UNMOUNT_SUBPATHS = "unmount subPath mounts"
    UNPUBLISH = "NodeUnpublishVolume"
    UNSTAGE = "NodeUnstageVolume"
    WAIT = "look again"
    FORGET = "remove the pod's directory of it"
    FORGET_ALL = "remove all directories of it"
    GIVE_UP = "leave it mounted"


class NextStep(Facts, frozen=True):
    """A step. ``problem`` says why it is not the first attempt, and why the volume counts as mounted meanwhile."""

    step: VolumeStep
    problem: str = ""


def next_step(volume: MountedVolume, state: VolumeState, answered: AbstractSet[VolumeStep]) -> NextStep:
    """The next step; ``answered`` are those calls to which the driver has answered OK in this run of the agent."""
    if volume.problem:
        return NextStep(step=VolumeStep.GIVE_UP, problem=volume.problem)
    if state.subpaths:
        again = VolumeStep.UNMOUNT_SUBPATHS in answered
        return NextStep(
            step=VolumeStep.UNMOUNT_SUBPATHS, problem=f"{state.subpaths[0]} is still mounted" if again else ""
        )
    if VolumeStep.UNPUBLISH not in answered or state.target:
        return _call(VolumeStep.UNPUBLISH, state.target, answered)
    if state.users or volume.inline:
        return _forget(VolumeStep.FORGET, state)
    if (state.has_stage and VolumeStep.UNSTAGE not in answered) or state.stage:
        return _call(VolumeStep.UNSTAGE, state.stage, answered)
    if state.elsewhere:
        return NextStep(step=VolumeStep.WAIT, problem=f"its file system is also mounted at {state.elsewhere[0]}")
    return _forget(VolumeStep.FORGET_ALL, state)


def _forget(step: VolumeStep, state: VolumeState) -> NextStep:
    """The last step; not for a volume that was never seen mounted: then its absence from the mount table proves nothing."""
    if state.filesystems:
        return NextStep(step=step)
    return NextStep(step=VolumeStep.GIVE_UP, problem="the agent has not seen it mounted, so it cannot see its end")


def _call(step: VolumeStep, mount: str, answered: AbstractSet[VolumeStep]) -> NextStep:
    lied = step in answered
    problem = f"the driver has answered OK to {step.value}, but {mount} is still mounted" if lied else ""
    return NextStep(step=step, problem=problem)
