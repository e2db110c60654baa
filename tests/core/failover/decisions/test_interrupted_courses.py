"""Courses of a failover in a small world: interrupted after every step, among faults, and held to what must never happen."""

from dataclasses import replace

import pytest
from support.failover.course_driver import POLICY
from support.failover.node_lives import (
    BEGIN,
    FATES,
    FENCES,
    HEALED,
    Life,
    is_cut,
    is_known_to_be_off,
    left,
    ours,
    reboots,
    shuts_down,
)
from support.failover.node_world import Device, World

from lastcall.failover.decisions.steps import (
    AskTarget,
    Delete,
    Detach,
    ForceDelete,
    SwitchOff,
    SwitchOn,
    TaintNode,
    Wait,
)
from lastcall.failover.evidence import out_of_service_taint
from lastcall.model.fence_policy import FailoverMode

HOW = ("done", "lost", "half")


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
    """With what was done last, without it, or with half of it; whatever it is, the end is the same."""

    def course(**stop):
        life = Life(World(devices=(Device("bmc", fence),), rest=False), replace(POLICY, detach=True))
        return life.until(HEALED, FATES[fate], **stop)

    whole = course()
    length = len(whole.log)
    assert length >= 2
    for stop in range(length):
        for how in HOW if isinstance(whole.log[stop], Delete | ForceDelete | Detach) else HOW[:2]:
            life = course(stop=stop, how=how)
            assert life.lives == 2
            assert left(life.world) == left(whole.world), (stop, how)
            if fate != "by hand":  # what a person says is not believed again by who has not seen it come: it is fenced
                assert (life.world.mark is None, ours(life.world)) == (whole.world.mark is None, ours(whole.world))
                assert life.world.boot == life.world.node.boot_id
            life.heal()


def test_who_goes_on_asks_for_the_status_at_once_and_gives_no_second_order():
    life = Life(World()).until(BEGIN + 50, is_cut, stop=4)
    assert (life.lives, len(life.said(SwitchOff)), ours(life.world)) == (2, 1, False)
    life.until(BEGIN + 65)  # for 20 s what the next controller has seen first counts as a sign of life
    assert (len(life.said(SwitchOff)), ours(life.world)) == (1, True)
    life.until(HEALED).heal()


def test_a_planned_reboot_is_not_fenced():
    life = Life(World()).until(HEALED, reboots)
    assert not life.said(SwitchOff)
    assert not life.said(TaintNode)
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
    assert not life.said(TaintNode)
    assert left(life.world) == {"db-0", "db-1", "web"}
    assert "bmc" in life.controller.step().why
    life.heal()


def test_a_policy_that_observes_does_nothing_and_one_that_taints_leaves_the_rest_to_others():
    life = Life(World(), replace(POLICY, mode=FailoverMode.OBSERVE)).until(HEALED, World.off)
    assert life.log == []
    assert "would be failed over now" in life.controller.step().why
    life = Life(World(rest=True), replace(POLICY, mode=FailoverMode.TAINT_ONLY)).until(HEALED, World.off)
    assert left(life.world) == set()
    life.heal()


def test_a_node_that_speaks_again_before_it_is_switched_off_is_left_alone():
    life = Life(World(devices=FENCES["escalates"][:1])).until(BEGIN + 42, is_cut)
    assert life.said(AskTarget)
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


def test_a_fence_that_has_lied_is_not_believed_again():
    world = World(devices=(Device("bmc", "liar"),), rest=False, deceived=True)
    life = Life(world, replace(POLICY, power_on=False, detach=True)).until(BEGIN + 100, is_cut)
    assert ours(world)
    world.cut = False
    life.until(BEGIN + 115)
    assert not ours(world)
    world.deceived = False
    world.pods["u-new"] = replace(world.pods["u-csi"], uid="u-new", name="new", tolerates=False, volumes=())
    life.until(BEGIN + 200)
    world.cut = True
    life.until(HEALED)
    assert not ours(world)
    assert "is not believed" in life.controller.step().why
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
    world.node.taints = out_of_service_taint.remove_taint(world.node.taints, by_hand=False)
    life.until(BEGIN + 200)
    assert not ours(world)
    assert not world.pods["u-late"].finished
    assert "somebody has taken lastcall's taint" in life.controller.step().why
    life.heal()
