"""Is the machine behind the fence the node's own?"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.failover.limits.fence_targets import TargetMatch, judge_target
from lastcall.failover.limits.node_indexes import NodeIndexes
from lastcall.model.fence_node import FenceNode
from lastcall.model.observed import WatchedNode
from lastcall.ports.fences import FenceTarget

UUID = "4c4c4544-0051-3510-8052-b4c04f4a3332"
SWAPPED = "44454c4c-5100-1035-8052-b4c04f4a3332"
ANOTHER = "4c4c4544-0051-3510-8052-b4c04f4a3333"


def node(**said):
    return FenceNode(name="worker-1", **said)


@pytest.mark.parametrize(
    "told",
    [UUID, UUID.upper(), SWAPPED, UUID.replace("-", ""), f" {UUID}\n", f"urn:uuid:{UUID}"],
    ids=["as it is", "upper case", "other byte order", "without dashes", "with blanks", "as a URN"],
)
def test_the_same_uuid_however_it_is_spelled(told):
    assert judge_target(FenceTarget(system_uuid=told), node(system_uuid=UUID)).match is TargetMatch.SAME


@given(st.uuids())
def test_both_byte_orders_are_one_uuid(uuid):
    swapped = FenceTarget(system_uuid=str(type(uuid)(bytes=uuid.bytes_le)))
    expected = judge_target(FenceTarget(system_uuid=str(uuid)), node(system_uuid=str(uuid))).match
    assert judge_target(swapped, node(system_uuid=str(uuid))).match is expected


@given(st.uuids(), st.uuids())
def test_two_uuids_are_two_machines(one, two):
    judgement = judge_target(FenceTarget(system_uuid=str(one)), node(system_uuid=str(two)))
    if two.bytes not in (one.bytes, one.bytes_le):
        assert judgement.match is not TargetMatch.SAME


def test_another_uuid_is_another_machine_and_both_are_named():
    judgement = judge_target(FenceTarget(system_uuid=ANOTHER, name="System.Embedded.1"), node(system_uuid=UUID))
    assert judgement.match is TargetMatch.OTHER
    assert judgement.why == (
        f"the system UUID of node worker-1 is {UUID}, that of the fence's target System.Embedded.1 is {ANOTHER}"
    )


@pytest.mark.parametrize(
    ("target", "here"),
    [
        (FenceTarget(system_uuid=ANOTHER, serial="S1"), node(system_uuid=UUID, serial="S1")),
        (FenceTarget(system_uuid=UUID, serial="S2"), node(system_uuid=UUID, serial="S1")),
        (FenceTarget(serial="S1", provider_id="aws:///a/i-2"), node(serial="S1", provider_id="aws:///a/i-1")),
    ],
    ids=["UUID", "serial", "providerID"],
)
def test_one_difference_outweighs_all_that_agrees(target, here):
    assert judge_target(target, here).match is TargetMatch.OTHER


@pytest.mark.parametrize(
    ("target", "here", "match"),
    [
        (FenceTarget(serial="cz3 1"), node(serial="CZ3 1 "), TargetMatch.SAME),
        (FenceTarget(serial="CZ31"), node(serial="CZ32"), TargetMatch.OTHER),
        (FenceTarget(provider_id="aws:///eu-1a/i-1"), node(provider_id="aws:///eu-1a/i-1"), TargetMatch.SAME),
        (FenceTarget(provider_id="aws:///i-1"), node(provider_id="aws:///eu-1a/i-1"), TargetMatch.SAME),
        (FenceTarget(provider_id="aws:///eu-1a/i-2"), node(provider_id="aws:///eu-1a/i-1"), TargetMatch.OTHER),
        (FenceTarget(provider_id="gce://p/z/n"), node(provider_id="gce://other/z/n"), TargetMatch.OTHER),
        (FenceTarget(provider_id="gce://p/z/i-1"), node(provider_id="aws:///z/i-1"), TargetMatch.OTHER),
    ],
)
def test_serial_numbers_and_provider_ids(target, here, match):
    assert judge_target(target, here).match is match


@pytest.mark.parametrize(
    ("target", "here"),
    [
        (FenceTarget(), node(system_uuid=UUID)),
        (FenceTarget(name="worker-1"), node(system_uuid=UUID)),
        (FenceTarget(system_uuid=UUID), node()),
        (FenceTarget(system_uuid=UUID), node(serial="S1")),
        (FenceTarget(system_uuid="worker-1"), node(system_uuid="worker-1")),
        (FenceTarget(serial="S1"), node(system_uuid=UUID)),
    ],
    ids=["nothing", "a name alone", "a silent node", "different kinds", "no UUID", "the other way round"],
)
def test_what_cannot_be_known(target, here):
    judgement = judge_target(target, here)
    assert judgement.match is TargetMatch.UNKNOWN
    assert "names" in judgement.why


@pytest.mark.parametrize(
    "unset",
    [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
    ],
)
def test_a_uuid_that_many_boards_have_proves_nothing(unset):
    assert judge_target(FenceTarget(system_uuid=unset), node(system_uuid=unset)).match is TargetMatch.UNKNOWN
    assert judge_target(FenceTarget(system_uuid=unset), node(system_uuid=UUID)).match is TargetMatch.UNKNOWN


@pytest.mark.parametrize(
    "unset", ["To Be Filled By O.E.M.", "Default string", "N/A", "0000000", "123456789", "-", "None"]
)
def test_a_serial_number_that_nobody_has_set_proves_nothing(unset):
    assert judge_target(FenceTarget(serial=unset), node(serial=unset)).match is TargetMatch.UNKNOWN


@pytest.mark.parametrize(
    ("target", "checked", "unchecked"),
    [
        (FenceTarget(system_uuid=UUID), True, True),
        (FenceTarget(), False, True),
        (FenceTarget(system_uuid=ANOTHER), False, False),
    ],
    ids=["same", "unknown", "other"],
)
def test_what_may_be_switched_off(target, checked, unchecked):
    judgement = judge_target(target, node(system_uuid=UUID))
    assert judgement.allows_fencing(unchecked=False) is checked
    assert judgement.allows_fencing(unchecked=True) is unchecked


def showing(*found):
    """The index of nodes, each with its system UUID."""
    noted = NodeIndexes()
    for name, uuid in found:
        said = {"metadata": {"name": name}, "status": {"nodeInfo": {"systemUUID": uuid}}}
        noted.update_node(name, msgspec.convert(said, WatchedNode))
    return noted


@pytest.mark.parametrize("told", [UUID, UUID.upper(), SWAPPED])
def test_a_machine_on_which_another_node_may_run_is_never_the_nodes_own(told):
    noted = showing(("worker-1", UUID), ("worker-2", ANOTHER), ("worker-3", told))
    assert noted.node_sharing_uuid("worker-1", UUID) == "worker-3"
    judgement = judge_target(FenceTarget(system_uuid=UUID), node(system_uuid=UUID, shared_with="worker-3"))
    assert judgement.match is TargetMatch.OTHER
    assert not judgement.allows_fencing(unchecked=True)
    assert "node worker-3" in judgement.why


@pytest.mark.parametrize("unset", ["", "00000000-0000-0000-0000-000000000000"])
def test_a_uuid_that_nobody_has_set_is_shared_with_nobody(unset):
    assert showing(("worker-1", unset), ("worker-2", unset)).node_sharing_uuid("worker-1", unset) == ""
