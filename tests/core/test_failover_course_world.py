"""Courses of a failover in a small world: interrupted after every step, among faults, and held to what must never happen."""

import random
from dataclasses import replace

import pytest
from support.failover_driver import POLICY, Controller
from support.failover_world import Device, World

from lastcall.failover import taints
from lastcall.failover.steps import SwitchOff, SwitchOn, Taint, Wait
from lastcall.failover.storms import Answer
from lastcall.model.fence_policy import Mode

BEGIN, HEALED, END = 63, 900, 1400
STAY = {"csi", "mine", "etcd"}


def ours(world):
    return any(taints.like_ours(one) for one in world.node.taints)


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

    def until(self, end, fate=None, *, stop=None, lost=False):
        """``stop``: the controller is replaced at this step, which is ``lost`` or has been done."""
        world = self.world
        while world.now < end:
            if fate and world.now == BEGIN:
                fate(world)
            while self.controller.run(before=lambda step: self._goes_on(step, stop, lost=lost)) is None:
                pass
            if fate is reboots and world.now == BEGIN + 120:
                world.on()
            world.tick()
        return self

    def _goes_on(self, step, stop, *, lost):
        if stop is None or len(self.log) != stop:
            return True
        if lost:
            self.log.append(None)
        else:
            self.log.append(step)
            self.controller.do(step)
        self.restart()
        return False

    def heal(self):
        """Whatever was wrong is mended."""
        world = self.world
        world.cut = world.hung = False
        world.on()
        self.controller.storm = Answer(allowed=True, why="no limit")
        self.until(HEALED + 250)
        world.on()  # if it was just being switched off
        self.until(END)
        assert world.mark is None, world.mark
        assert not any(device.due for device in world.devices)
        return self

    def said(self, kind):
        return [one for one in self.log if isinstance(one, kind)]


def left(world):
    return {one.name for one in world.pods.values()} - STAY - {"stuck"}


@pytest.mark.parametrize("rest", [True, False], ids=["beside kube-controller-manager", "alone"])
@pytest.mark.parametrize("fence", ["good", "slow", "late", "escalates"])
@pytest.mark.parametrize("fate", ["power", "hang", "cut"])
def test_a_lost_node_is_failed_over_and_comes_back(fate, fence, rest):
    life = Life(World(devices=FENCES[fence], rest=rest), replace(POLICY, detach=not rest))
    life.until(HEALED, FATES[fate])
    assert left(life.world) == set()
    assert "a-csi" in life.world.attachments
    assert set(life.world.attachments) <= {"a-csi", "a-mine"}
    assert life.said(SwitchOn)
    assert (life.world.boot, life.world.node.boot_id) == ("boot-2", "boot-2")
    assert (life.world.mark, ours(life.world)) == (None, False)
    life.heal()


@pytest.mark.parametrize("fate", ["power", "cut", "reboot", "shutdown", "by hand"])
@pytest.mark.parametrize("fence", ["good", "late"])
def test_another_controller_goes_on_after_every_step(fate, fence):
    """With what was done last, or without; whatever it is, the end is the same."""

    def course(**stop):
        life = Life(World(devices=(Device("bmc", fence),), rest=False), replace(POLICY, detach=True))
        return life.until(HEALED, FATES[fate], **stop)

    whole = course()
    length = len(whole.log)
    assert length >= 2
    for stop in range(length):
        for lost in (False, True):
            life = course(stop=stop, lost=lost)
            assert life.lives == 2
            assert left(life.world) == left(whole.world), (stop, lost)
            if fate != "by hand":  # what a person says is not believed again by who has not seen it come: it is fenced
                assert (life.world.mark is None, ours(life.world)) == (whole.world.mark is None, ours(whole.world))
                assert life.world.boot == life.world.node.boot_id
            life.heal()


def test_a_planned_reboot_is_not_fenced():
    life = Life(World()).until(HEALED, reboots)
    assert not life.said(SwitchOff)
    assert not life.said(Taint)
    assert "db-0" not in left(life.world)
    assert {"db-1", "web"} <= left(life.world)
    life.heal()


def test_a_shutdown_without_an_end_is_fenced_after_its_own_deadline():
    life = Life(World()).until(BEGIN + 95, shuts_down)
    assert not life.said(SwitchOff)
    assert left(life.world) == {"db-1"}
    life.until(BEGIN + 110)
    assert life.said(SwitchOff)


def test_without_a_fence_nothing_is_forced_and_it_says_what_it_waits_for():
    life = Life(World(devices=())).until(HEALED, is_cut)
    assert life.log == []
    waits = life.controller.step()
    assert isinstance(waits, Wait)
    assert "its policy names no fencer, and a proof is waited for" in waits.why
    life.heal()


@pytest.mark.parametrize("kind", ["gone", "other", "mute", "deaf"])
def test_a_fence_that_fails_forces_nothing_and_says_why(kind):
    life = Life(World(devices=(Device("bmc", kind),))).until(HEALED, is_cut)
    assert not life.said(Taint)
    assert left(life.world) == {"db-0", "db-1", "web"}
    assert "bmc" in life.controller.step().why
    life.heal()


def test_a_policy_that_observes_does_nothing_and_one_that_taints_leaves_the_rest_to_others():
    life = Life(World(), replace(POLICY, mode=Mode.OBSERVE)).until(HEALED, World.off)
    assert life.log == []
    assert "would be failed over now" in life.controller.step().why
    life = Life(World(rest=True), replace(POLICY, mode=Mode.TAINT_ONLY)).until(HEALED, World.off)
    assert left(life.world) == set()
    life.heal()


def test_a_node_that_speaks_again_before_it_is_switched_off_is_left_alone():
    life = Life(World(devices=FENCES["escalates"][:1])).until(BEGIN + 42, is_cut)
    assert life.world.mark
    assert not life.said(SwitchOff)
    life.world.cut = False
    life.until(BEGIN + 60)
    assert life.world.mark is None


def test_a_boot_that_is_not_over_loses_our_taint_at_once():
    life = Life(World(), replace(POLICY, power_on=False)).until(BEGIN + 50, World.off)
    assert ours(life.world)
    life.world.boot = "boot-1"  # the fence has lied
    life.until(BEGIN + 62)
    assert not ours(life.world)
    life.heal()


def test_what_a_person_has_done_stays():
    life = Life(World(), replace(POLICY, power_on=False)).until(BEGIN + 10, is_known_to_be_off)
    life.until(HEALED)
    assert not life.said(SwitchOff)
    assert left(life.world) == set()
    life.heal()
    assert ours(life.world)


def test_a_taint_by_hand_goes_where_the_policy_says_so():
    life = Life(World(), replace(POLICY, power_on=False, remove_by_hand=True)).until(HEALED, is_known_to_be_off)
    life.heal()
    assert not ours(life.world)


def test_who_takes_our_taint_away_is_heeded():
    world = World(rest=False)
    life = Life(world, replace(POLICY, power_on=False, detach=True))
    life.until(BEGIN + 45, World.off)
    assert ours(world)
    world.pods["u-late"] = replace(world.pods["u-stuck"], uid="u-late", name="late", finished=False, terminating=True)
    world.node.taints = taints.removed(world.node.taints, by_hand=False)
    life.until(BEGIN + 200)
    assert not ours(world)
    assert not world.pods["u-late"].finished
    assert "somebody has taken lastcall's taint" in life.controller.step().why
    life.heal()


EVENTS = (
    "off", "off", "on", "hang", "cut", "cut", "uncut", "reboot", "shutdown", "by hand", "restart", "restart", "other",
    "observe", "no policy", "policy", "storm", "calm", "untaint",
)  # fmt: skip


def strike(life, event, chance):
    """One thing happens that nobody has asked for."""
    world, controller = life.world, life.controller
    match event:
        case "off" | "hang" | "cut" | "reboot" | "shutdown" if world.boot:
            {"off": World.off, "hang": hangs, "cut": is_cut, "reboot": reboots, "shutdown": shuts_down}[event](world)
        case "on":
            world.on()
        case "uncut":
            world.cut = False
        case "by hand" if world.boot is None:
            world.by_hand()
        case "untaint":
            world.node.taints = taints.removed(world.node.taints, by_hand=False)
        case "restart":
            life.restart()
        case "other":  # it has lost the leadership, and does not know yet what the next one does
            before = controller
            life.restart()
            assert isinstance(before.run(), Wait)
        case "observe" | "policy" | "no policy":
            mode = Mode.OBSERVE if event == "observe" else chance.choice([Mode.ENFORCE, Mode.ENFORCE, Mode.TAINT_ONLY])
            life.policy = controller.policy = None if event == "no policy" else replace(life.base, mode=mode)
        case "storm" | "calm":
            controller.storm = Answer(allowed=event == "calm", why="too many")


def live(seed):
    """A life full of accidents, and its end."""
    chance = random.Random(seed)
    rest = chance.random() < 0.5
    kinds = chance.choices(["good", "slow", "late", "deaf", "gone", "other", "mute"], [4, 2, 2, 1, 1, 1, 1], k=2)
    world = World(devices=tuple(Device(f"f{at}", kind) for at, kind in enumerate(kinds)), rest=rest)
    base = replace(
        POLICY,
        detach=not rest,
        power_on=chance.random() < 0.5,
        remove_by_hand=chance.random() < 0.3,
        suspect_after=chance.choice([12.0, 40.0]),
    )
    life = Life(world, base)
    life.base = base
    while world.now < HEALED:
        world.tick()
        if world.now > BEGIN and chance.random() < 0.02:
            strike(life, chance.choice(EVENTS), chance)
        lost = chance.random() < 0.02
        step = life.controller.run(before=lambda _, lost=lost: not lost)
        if step is None and chance.random() < 0.5:
            life.restart()
    life.policy = life.controller.policy = base
    life.heal()
    by_hand = world.node.taints if not base.remove_by_hand else ()
    return life, by_hand


@pytest.mark.parametrize("hundred", range(3))
def test_no_promise_is_broken_by_chance(hundred):
    """Promises are asserted where they would be broken; here, that all of it is reached."""
    reached = set()
    for seed in range(hundred * 100, hundred * 100 + 100):
        try:
            life, _ = live(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        reached |= {type(one).__name__ for one in life.log}
    assert reached == {
        "AskPower", "AskTarget", "Delete", "Detach", "ForceDelete", "Mark", "SwitchOff", "SwitchOn", "Taint", "Unmark",
        "Untaint",
    }  # fmt: skip
