"""What is remembered of a node's fences, and when they are made anew."""

import msgspec
import pytest
from support.failover.small_cluster import POLICY, World

from lastcall.errors import Unavailable
from lastcall.failover.decisions import steps
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy

OFF = {"fencer": "f", "within": 30.0}


async def test_what_was_asked_about_one_boot_is_forgotten_with_the_next():
    world = World()
    await world.carry_out(steps.SwitchOff, **OFF)
    node = (await world.cluster.read_node("n")).fence_node
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].offs
    assert world.fences.made == 1
    await world.devices.prepare_fences(node, POLICY, "b2")
    assert world.devices.fencer_states()[0].offs == ()


async def test_a_fencer_that_is_dead_for_weeks_fills_no_memory():
    world = World()
    await world.subject()
    world.fences.fence.switch_off = world.fences.fence.read_target = fails
    for _ in range(40):
        await world.devices.switch_off("f", 1)
        await world.devices.ask_target("f")
        world.clock.now += 1
    found = world.devices.fencer_states()[0]
    assert (len(found.offs), len(found.unanswered), found.forgotten) == (16, 16, 48)
    assert found.offs[-1].ended == world.clock.now - 1


async def fails(*_):
    raise Unavailable("no answer")


async def test_another_machine_is_another_target():
    world = World()
    subject = await world.subject()
    await world.acting.carry_out(steps.AskTarget(fencer="f", why="w"), subject)
    assert world.devices.fencer_states()[0].judgement
    await world.devices.prepare_fences(FenceNode(name="n", system_uuid="other"), POLICY, "b1")
    assert world.devices.fencer_states()[0].judgement is None


@pytest.mark.parametrize(("annotation", "made"), [("other", 1), ("bmc", 2)])
async def test_a_fence_is_made_anew_if_what_it_is_made_from_has_changed(annotation, made):
    """Other programs change their annotations of a Node in each round; nothing would ever come of a fencer then."""
    kind = {"program": "fence_ipmilan", "parametersFrom": {"ip": {"annotation": "bmc"}}}
    spec = {"fencers": [{"name": "f", "agent": kind}]}
    policy = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, FencePolicy)
    world, node = World(), FenceNode(name="n", system_uuid="1", annotations={"bmc": "b", "other": "1"})
    await world.devices.prepare_fences(node, policy, "b1")
    await world.devices.ask_target("f")
    changed = msgspec.structs.replace(node, annotations={**node.annotations, annotation: "2"})
    await world.devices.prepare_fences(changed, policy, "b1")
    assert (world.fences.made, world.devices.fencer_states()[0].judgement is None) == (made, made == 2)


async def test_a_fence_that_cannot_be_made_is_made_again_later():
    world = World()
    world.fences.error = Unavailable("no Secret")
    node = (await world.cluster.read_node("n")).fence_node
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].trouble == "no Secret"
    world.fences.error = None
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].trouble
    world.clock.now += 31
    await world.devices.prepare_fences(node, POLICY, "b1")
    assert world.devices.fencer_states()[0].trouble == ""
