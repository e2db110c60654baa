"""What a controller does not know when it begins to lead, or when time has passed: what others have asked before, and what is new."""

from support.failing_over import failing_over

from lastcall.model.power import Power

LINGER = 60.0
"""``case.Policy.linger``."""


@failing_over
async def test_who_begins_to_lead_waits_for_what_the_leader_before_has_ordered(world):
    """The device accepts the order, and may still carry it out, when the leader dies and the node is heard of again."""
    leader = world.start("a")
    await world.cluster.settle(5)
    world.start("b")
    await world.cluster.settle(120)
    node = world.place()
    world.fences[node].lies = Power.ON
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    ordered = world.now
    leader.process.kill()
    world.nodes.silent.discard(node)
    await world.until(lambda: not world.mark(node), 180)
    assert len(world.verbs("off")) == 1
    assert world.now >= ordered + LINGER
