"""A node in virtual time with two pods on it, and the button of its machine."""

from support.agents.virtual_parts import phases

TWO = phases((0, 20), (2_000_000_000, 10))
CRITICAL = {"priorityClassName": "system-node-critical"}


async def pods(node):
    """One of each phase, and both ready."""
    await node.started("app", terminationGracePeriodSeconds=30)
    await node.started("dns", **CRITICAL)
    await node.until(lambda: node.ready("app") and node.ready("dns"))
    await node.clock.sleep(1)


async def off(node, logind):
    """Seconds from the button to the end."""
    begin = node.clock.boottime()
    await logind.power_off()
    return (await logind.wait_for_start(seconds=300)).at - begin


def at(node, name, what):
    """When that reached the pod first."""
    return next((when for when, kind in node.deliveries(name) if kind == what), None)
