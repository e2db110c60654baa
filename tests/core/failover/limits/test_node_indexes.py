"""The indexes of nodes say what a look at all nodes says, whatever has happened to the nodes; and limits are asked where needed."""

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.failover.cases import NOW, PROVED, SUSPECT

from lastcall.failover.decisions.decision_table import decide
from lastcall.failover.decisions.steps import ForceDelete, TaintNode, Wait
from lastcall.failover.limits.node_indexes import NodeIndexes
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.model.observed import WatchedNode
from lastcall.model.system_uuid import uuid_spellings

ONE = "4c4c4544-0042-3510-8052-b4c04f4e3732"
SWAPPED = "44454c4c-4200-1035-8052-b4c04f4e3732"
UUIDS = ("", "0" * 32, "not a UUID", ONE, ONE.upper(), ONE.replace("-", ""), SWAPPED, "5" + ONE[1:])

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(("a", "b", "c", "d")),
        st.none() | st.tuples(st.sampled_from(UUIDS), st.sampled_from(("", "{}")), st.sampled_from(("", "[]"))),
    ),
    max_size=30,
)


def node(name, uuid, mark, fenced):
    annotations = {"lastcall.dev/failover": mark, "lastcall.dev/fenced": fenced}
    said = {
        "metadata": {"name": name, "annotations": {key: text for key, text in annotations.items() if text}},
        "status": {"nodeInfo": {"systemUUID": uuid}},
    }
    return msgspec.convert(said, WatchedNode)


@given(changes=CHANGES)
def test_the_indexes_say_what_a_look_at_all_nodes_says(changes):
    noted, nodes = NodeIndexes(), {}
    for name, said in changes:
        nodes.pop(name, None)
        if said is not None:
            nodes[name] = node(name, *said)
        noted.update_node(name, nodes.get(name))
        assert {*noted.nodes_with_fencings} == {
            one for one, found in nodes.items() if found.mark_text or found.fencing_history_text
        }
        assert {*noted.nodes_with_history} == {one for one, found in nodes.items() if found.fencing_history_text}
        for one, found in nodes.items():
            mine = found.status.node_info.system_uuid
            same = {
                other
                for other, its in nodes.items()
                if other != one and uuid_spellings(mine) & uuid_spellings(its.status.node_info.system_uuid)
            }
            assert noted.node_sharing_uuid(one, mine) in (same or {""})


# -- limits ------------------------------------------------------------------------------------------------------------


class Limits:
    """Counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self):
        self.asked += 1
        return LimitAnswer(allowed=False, why="too many", again=NOW + 60)


def test_no_limit_is_computed_for_a_node_whose_boot_is_over():
    limits = Limits()
    assert isinstance(decide(replace(PROVED, storm=limits), NOW), TaintNode | ForceDelete)
    assert limits.asked == 0


def test_the_limits_are_computed_once_for_a_node_that_would_be_fenced():
    limits = Limits()
    step = decide(replace(SUSPECT, storm=limits), NOW)
    assert isinstance(step, Wait)
    assert "too many" in step.why
    assert limits.asked == 1
