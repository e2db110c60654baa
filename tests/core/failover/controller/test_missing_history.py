"""What a controller does not know when it begins to lead, or when time has passed: what others have asked before, and what is new."""

import msgspec
from support.failover.virtual_cluster import failing_over

from lastcall.failover.controller.persistent_claims import AttachedClaims
from lastcall.model.observed import WatchedAttachment
from lastcall.model.power import PowerState

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
    world.fences[node].lies = PowerState.ON
    world.nodes.silent.add(node)
    await world.until(lambda: world.verbs("off"), 60)
    ordered = world.now
    leader.process.kill()
    world.nodes.silent.discard(node)
    await world.until(lambda: not world.mark(node), 180)
    assert len(world.verbs("off")) == 1
    assert world.now >= ordered + LINGER


class Volumes:
    """PersistentVolumes by name, each with its claim; ``asked`` for these."""

    def __init__(self, **bound):
        self.bound, self.asked = bound, []

    async def find_claim(self, volume):
        self.asked.append(volume)
        return self.bound.get(volume)


def attached(uid, volume="v"):
    said = {"metadata": {"name": f"va-{volume}", "uid": uid}, "spec": {"source": {"persistentVolumeName": volume}}}
    return msgspec.convert(said, WatchedAttachment)


async def test_a_claim_is_asked_for_once_while_its_volume_is_attached():
    volumes = Volumes(v=("d", "old"), w=("d", "other"))
    claims = AttachedClaims(volumes)
    both = [attached("1"), attached("2", "w"), attached("3", "")]
    assert await claims.claims_on_node("n", both) == {("d", "old"): "v", ("d", "other"): "w"}
    assert await claims.claims_on_node("n", both) == {("d", "old"): "v", ("d", "other"): "w"}
    assert volumes.asked == ["v", "w"]


async def test_a_volume_that_was_made_anew_has_the_claim_that_it_has_now():
    volumes = Volumes(v=("d", "old"))
    claims = AttachedClaims(volumes)
    await claims.claims_on_node("n", [attached("1")])
    volumes.bound = {"v": ("d", "new")}
    assert await claims.claims_on_node("n", [attached("2")]) == {("d", "new"): "v"}


async def test_a_volume_that_was_not_bound_is_asked_for_again():
    volumes = Volumes()
    claims = AttachedClaims(volumes)
    assert await claims.claims_on_node("n", [attached("1")]) == {}
    volumes.bound = {"v": ("d", "new")}
    assert await claims.claims_on_node("n", [attached("1")]) == {("d", "new"): "v"}


async def test_nothing_is_kept_of_what_is_not_attached_any_more():
    volumes = Volumes(v=("d", "old"))
    claims = AttachedClaims(volumes)
    await claims.claims_on_node("n", [attached("1")])
    assert await claims.claims_on_node("n", []) == {}
    assert claims._known == {}
