"""The failover controller beside the lab's control plane, in virtual time: a node is gone, and its pods run elsewhere."""

from support.failing_over import failing_over

from lastcall.lab.volumes.records import violations


@failing_over
async def test_a_node_without_power_is_failed_over_in_seconds(world):
    world.start()
    node = world.place()
    world.nodes.pull(node)
    took = await world.until(lambda: world.place() not in (None, node))
    assert 15 <= took < 40
    assert world.verbs("off")
    assert violations(world.nodes.storage.records) == []
