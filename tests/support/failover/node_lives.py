"""Worlds with the controllers that follow each other in them, and what befalls a node."""

from dataclasses import replace

from support.failover.course_driver import POLICY, Controller
from support.failover.node_world import Device, World

from lastcall.failover.decisions.steps import Delete, Detach, ForceDelete
from lastcall.failover.evidence import out_of_service_taint
from lastcall.failover.limits.storms import LimitAnswer

BEGIN, HEALED, END = 63, 900, 1400
STAY = {"csi", "mine", "etcd"}


def ours(world):
    return any(out_of_service_taint.is_like_ours(one) for one in world.node.taints)


def reboots(world):
    """Planned: it says so, ends its pods, and is back within its deadline."""
    world.word = (world.boot, world.now + 200, frozenset({"u-db-0"}))
    world.off()


def shuts_down(world):
    """The same, but it does not come back."""
    reboots(world)
    world.word = (world.word[0], world.now + 100, frozenset({"u-db-0", "u-web"}))


def hangs(world):
    world.hung = True


def is_cut(world):
    world.cut = True


def is_known_to_be_off(world):
    world.off()
    world.by_hand()


FATES = {
    "power": World.off,
    "hang": hangs,
    "cut": is_cut,
    "reboot": reboots,
    "shutdown": shuts_down,
    "by hand": is_known_to_be_off,
}
FENCES = {
    "good": (Device("bmc"),),
    "slow": (Device("bmc", "slow"),),
    "late": (Device("bmc", "late"),),
    "escalates": (Device("a", "gone"), Device("b", "other"), Device("c", "deaf"), Device("d", "mute"), Device("e")),
    "none": (),
}


def first_of(step):
    """Of what is removed in one step the first alone."""
    if isinstance(step, Delete | ForceDelete):
        return replace(step, pods=step.pods[:1])
    return replace(step, attachments=step.attachments[:1]) if isinstance(step, Detach) else step


class Life:
    """A world with the controllers that follow each other in it, each with its own identity."""

    def __init__(self, world, policy=POLICY):
        self.world, self.policy, self.lives, self.log = world, policy, 0, []
        self.restart()

    def restart(self):
        self.lives += 1
        self.world.leader = f"life-{self.lives}"
        self.controller = Controller(self.world, me=self.world.leader, policy=self.policy)
        self.controller.log = self.log

    def until(self, end, fate=None, *, stop=None, how="done"):
        """``stop``: the controller is replaced at this step, which was lost, done, or done by half."""
        world = self.world
        while world.now < end:
            if fate and world.now == BEGIN:
                fate(world)
            while self.controller.run(before=lambda step: self._goes_on(step, stop, how)) is None:
                pass
            if fate is reboots and world.now == BEGIN + 120:
                world.on()
            world.tick()
        return self

    def _goes_on(self, step, stop, how):
        if stop is None or len(self.log) != stop:
            return True
        self.log.append(None if how == "lost" else step)
        if how == "half":
            step = first_of(step)
        if how != "lost":
            self.controller.do(step)
        self.restart()
        return False

    def heal(self):
        """Whatever was wrong is mended."""
        world = self.world
        world.cut = world.hung = False
        world.on()
        self.controller.storm = LimitAnswer(allowed=True, why="no limit")
        self.until(HEALED + 250)
        world.on()  # if it was just being switched off
        self.until(END)
        assert world.mark is None, world.mark
        assert world.handed or not ours(world)
        assert not any(device.due for device in world.devices)
        return self

    def said(self, kind):
        return [one for one in self.log if isinstance(one, kind)]


def left(world):
    return {one.name for one in world.pods.values()} - STAY - {"stuck"}
