"""The order of the nodes that the scheduler keeps is the one that it would find if it looked at all of them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lastcall_lab.controllers.framework.view import View
from lastcall_lab.controllers.scheduling.node_ranking import NodeRanking, NodeRankings
from lastcall_lab.controllers.scheduling.scheduling_nodes import (
    NodeRejection,
    NodeVerdict,
    SchedulingNode,
    SchedulingNodes,
)

FULL = NodeRejection(("Too many pods",))


def node(name, **labels):
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {"allocatable": {"pods": "10"}}}


def pod(name, on="", phase="Running"):
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"containers": [], "nodeName": on}, "status": {"phase": phase}}


def rooms_of(*names):
    return {name: SchedulingNode(node(name), [], {}) for name in names}


def load(share):
    return float(share), share


CHANGE = st.tuples(
    st.sampled_from("abcdef"),
    st.one_of(
        st.none(),
        st.just(NodeVerdict(FULL)),
        st.builds(
            lambda unwelcome, tenths: NodeVerdict(None, unwelcome, load(Fraction(tenths, 10))),
            st.integers(0, 2),
            st.integers(0, 3),
        ),
    ),
    st.integers(0, 2),
)


@given(st.lists(st.lists(CHANGE, max_size=4), max_size=6), st.sampled_from(["", "a", "b"]))
def test_the_best_is_the_least_of_all_however_it_came_to_be(rounds, kept):
    rooms, verdicts, kin = {}, {}, {}
    ranking = NodeRanking(rooms)
    for changes in rounds:
        for name, verdict, near in changes:
            rooms.pop(name, None)
            if verdict is not None:
                rooms.update(rooms_of(name))
            verdicts[name], kin[name] = verdict, near
            ranking.mark_changed(name)
        ranking.renew(lambda room: verdicts[room.name])
        fit = [name for name in rooms if not verdicts[name].rejection]
        best = min(fit, key=lambda name: (verdicts[name].unwelcome, kin[name], verdicts[name].load, name), default=None)
        found = ranking.best_node(lambda room: kin[room.name], kept=kept)
        assert (found and found.name) == (kept if kept in fit else best)
        assert len(ranking.rejections) == len(rooms) - len(fit)


def test_only_nodes_that_have_changed_are_asked_for_again():
    view, rankings, asked = View(), NodeRankings(), []

    def judge(room):
        asked.append(room.name)
        return NodeVerdict()

    def ask():
        asked.clear()
        rankings.rooms.update_nodes(view, [])
        rankings.ranking_for(b"alike").renew(judge)
        return sorted(asked)

    for name in ("n1", "n2", "n3"):
        view.apply("nodes", node(name), None)
    assert ask() == ["n1", "n2", "n3"]
    assert ask() == []
    view.apply("nodes", node("n2", disk="ssd"), node("n2"))
    view.apply("pods", pod("web", on="n3"), None)
    assert ask() == ["n2", "n3"]
    view.apply("nodes", None, node("n1"))
    assert ask() == []
    assert rankings.ranking_for(b"alike").best_node(lambda room: 0).name == "n2"


def test_a_pod_on_its_way_fills_its_node_until_it_is_somewhere_else():
    view, changed = View(), []
    rooms = SchedulingNodes(changed.append)
    view.apply("nodes", node("n1"), None)
    rooms.update_nodes(view, [(pod("web"), "n1")])
    assert [len(room.pods) for room in rooms.rooms.values()] == [1]
    changed.clear()
    rooms.update_nodes(view, [(pod("web"), "n1")])
    assert changed == []
    rooms.update_nodes(view, [])
    assert changed == ["n1"]
    assert [len(room.pods) for room in rooms.rooms.values()] == [0]


def test_pods_without_a_likeness_are_judged_anew_and_of_the_kinds_the_last_ones_are_kept():
    rankings = NodeRankings()
    assert rankings.ranking_for(b"") is not rankings.ranking_for(b"")
    first = rankings.ranking_for(b"first")
    assert rankings.ranking_for(b"first") is first
    for number in range(100):
        rankings.ranking_for(b"%d" % number)
    assert rankings.ranking_for(b"first") is not first
