"""A failover's course among accidents of every kind: 300 lives of a node, each from its seed."""

import random
from dataclasses import replace

import pytest
from support.failover.course_driver import POLICY
from support.failover.node_lives import BEGIN, HEALED, Life, hangs, is_cut, reboots, shuts_down
from support.failover.node_world import Device, World

from lastcall.failover.decisions.steps import Wait
from lastcall.failover.evidence import out_of_service_taint
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.model.fence_policy import FailoverMode

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
            world.node.taints = out_of_service_taint.remove_taint(world.node.taints, by_hand=False)
        case "restart":
            life.restart()
        case "other":  # it has lost the leadership, and does not know yet what the next one does
            before = controller
            life.restart()
            assert isinstance(before.run(), Wait)
        case "observe" | "policy" | "no policy":
            mode = (
                FailoverMode.OBSERVE
                if event == "observe"
                else chance.choice([FailoverMode.ENFORCE, FailoverMode.ENFORCE, FailoverMode.TAINT_ONLY])
            )
            life.policy = controller.policy = None if event == "no policy" else replace(life.base, mode=mode)
        case "storm" | "calm":
            controller.storm = LimitAnswer(allowed=event == "calm", why="too many")


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
    return life.heal()


@pytest.mark.parametrize("hundred", range(3))
def test_no_promise_is_broken_by_chance(hundred):
    """Promises are asserted where they would be broken; here, that all of it is reached."""
    reached = set()
    for seed in range(hundred * 100, hundred * 100 + 100):
        try:
            life = live(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        reached |= {type(one).__name__ for one in life.log}
    assert reached == {
        "AskPower", "AskTarget", "Delete", "Detach", "ForceDelete", "Mark", "SwitchOff", "SwitchOn", "TaintNode", "Unmark",
        "Untaint",
    }  # fmt: skip
