"""Evaluates the storm limits with all known fencings: marked nodes, and nodes that this controller is about to mark.

A write lies between the decision to mark a node and the moment at which the watch shows the mark. Decisions made in
between must know about it, or two nodes are fenced where one may be. The same holds for the marks of the previous
leader: the watch may lag, so all Nodes are listed once after each change of leader.
"""

from collections.abc import Collection, Iterable, Sequence

from lastcall import names
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.controller_ports import FailoverApi
from lastcall.failover.decisions import remaining
from lastcall.failover.decisions.case import Case
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits import fencing_history, policy_choice, storm_view, storms
from lastcall.failover.limits.storms import HOUR, Fencing, LimitAnswer, Member, StormView
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.observed import WatchedNode

AGAIN = 5.0
"""Seconds before a node that may not be fenced yet is checked again, unless it is woken earlier."""
KEPT = 1.0
"""Seconds for which the list of members is cached: with hundreds of nodes in trouble, each of them asks."""


class StormGuard:
    """The storm guard of one controller."""

    def __init__(self, cluster: FailoverApi, observing: ClusterView) -> None:
        self._cluster = cluster
        self._observing = observing
        self._claims: dict[str, OwnerMark] = {}
        self._over: list[Fencing] = []
        self._done: dict[str, str] = {}
        """The boot of each node that is proved to be over, with nothing left to fail over."""
        self._bad: dict[str, str] = {}
        self._informed = False
        """Whether all Nodes were listed since this controller leads."""
        self._members: dict[tuple[str, frozenset[str]], tuple[float, Sequence[Member]]] = {}
        """By label of failure domains and set of etcd nodes, with the time of creation."""

    def start_leading(self) -> None:
        """A term of leadership begins: nothing may be fenced until ``learn_nodes`` succeeds."""
        self._informed = False

    def learn_nodes(self, nodes: Iterable[WatchedNode], *, now: float, wall: float) -> bool:
        """Takes over the marks and histories of all Nodes, listed live since this controller leads.

        False if the watch has to deliver a Node first: one that has a mark, or an unreadable history, which counts for
        as long as it exists. Nothing may be fenced until a later list succeeds, also if this raises an error.
        """
        informed = True
        for node in nodes:
            name, mark = node.metadata.name, storm_view.readable_mark(node)
            knot, claim = self._observing.tracked_nodes.get(name), self._claims.get(name)
            if mark is not None and (claim is None or claim.boot_id != mark.boot_id):
                self._claims[name] = mark
            if isinstance(fencing_history.parse_history(node.fencing_history_text), fencing_history.UnreadableHistory):
                shown = knot is not None and knot.node.fencing_history_text == node.fencing_history_text
            else:
                shown = knot is not None or mark is None
                for one in storm_view.past_fencings(name, node.fencing_history_text, now=now, wall=wall):
                    self._record_ended_fencing(one, now)
            informed = informed and shown
        self._informed = informed
        return informed

    def note_claim(self, name: str, mark: OwnerMark) -> None:
        """A node is about to be marked; called without an await after the decision."""
        self._claims[name] = mark

    @property
    def claimed_nodes(self) -> Collection[str]:
        """Nodes that were about to be marked and have not been seen unmarked since; a new term reads them live."""
        return tuple(self._claims)

    def drop_claim(self, name: str) -> None:
        """A live read showed no mark on the node."""
        self._claims.pop(name, None)

    def end_fencing(self, name: str, mark: OwnerMark, now: float) -> None:
        """A fencing has ended; if the machine may have been powered off, it counts for its hour.

        The Node records it too, but the watch may deliver that later.
        """
        if mark.switched_off:
            self._record_ended_fencing(storm_view.closed_fencing(name, mark.boot_id, now), now)

    def _record_ended_fencing(self, fencing: Fencing, now: float) -> None:
        """Records a fencing that has ended, once; drops those of more than an hour ago."""
        key = fencing.node, fencing.boot_id
        kept = [one for one in self._over if now < one.began + HOUR and (one.node, one.boot_id) != key]
        self._over = [*kept, fencing]

    def observe_case(self, case: Case) -> None:
        """Updates a node's progress from its new Case: a failed-over node counts less (``Fencing.failed_over``)."""
        mark = case.mark
        if (
            mark is not None
            and mark.tainted
            and remaining.has_our_taint(case)
            and not remaining.has_anything_to_remove(case)
        ):
            self._done[case.name] = mark.boot_id
        else:
            self._done.pop(case.name, None)

    def forget_deleted_node(self, name: str, now: float) -> None:
        """The Node was deleted: what is recorded here is the only trace of a fencing of its machine."""
        self._bad.pop(name, None)
        self._done.pop(name, None)
        if mark := self._claims.pop(name, None):
            self.end_fencing(name, mark, now)

    def may_fence(
        self, name: str, boot_id: str, policy: FencePolicy, *, etcd: frozenset[str], now: float, wall: float
    ) -> LimitAnswer:
        """``storms.may_fence`` with the failure domains of the node's policy; a refusal before ``learn_nodes``."""
        if not self._informed:
            why = "all Nodes have not been read since this controller leads: it does not know what was fenced before"
            return LimitAnswer(allowed=False, why=why, again=now + AGAIN)
        domain = policy.spec.domain_label
        found, noted = self._observing.tracked_nodes, self._observing.node_indexes
        knots = [found[one] for one in {**dict.fromkeys(noted.nodes_with_fencings), **self._claims} if one in found]
        told = list(storm_view.list_fencings(knots, self._claims, self._done, domain=domain, now=now, wall=wall))
        known = {(one.node, one.boot_id) for one in told}
        fencings = [*told, *(one for one in self._over if (one.node, one.boot_id) not in known)]
        view = self._current_view(policy, fencings, etcd=etcd, now=now)
        return storms.may_fence(name, boot_id, view, policy_choice.storm_limits(policy.spec.limits), now)

    def view_trouble(self, policy: FencePolicy, now: float) -> LimitAnswer | None:
        """``storms.view_trouble``: why no node of this policy may be fenced; None if the view is reliable."""
        view = self._current_view(policy, (), etcd=frozenset(), now=now)
        return storms.view_trouble(view, policy_choice.storm_limits(policy.spec.limits), now)

    def _current_view(
        self, policy: FencePolicy, fencings: Sequence[Fencing], *, etcd: frozenset[str], now: float
    ) -> StormView:
        blind = self._cluster.watch_trouble
        return StormView(
            members=self._cached_members(policy.spec.domain_label, etcd, now),
            fencings=fencings,
            api_failed=now if blind else self._cluster.api_failed_at,
            api_trouble=f"a watch has failed ({blind})" if blind else self._cluster.api_trouble,
            clock_stepped=self._observing.clock.stepped,
            most_lost=self._observing.most_lost,
        )

    def new_complaints(self) -> list[str]:
        """Each unreadable history on a Node, reported once per text; it counts as a fencing that ended just now."""
        said = []
        texts = (
            (name, self._observing.tracked_nodes[name].node.fencing_history_text)
            for name in self._observing.node_indexes.nodes_with_history
        )
        for name, text in texts:
            found = fencing_history.parse_history(text)
            if isinstance(found, fencing_history.UnreadableHistory) and self._bad.get(name) != text:
                self._bad[name] = text
                said.append(f"annotation {names.FENCED} of node {name} {found.why}; it counts as fenced just now")
        return said

    def _cached_members(self, domain: str, etcd: frozenset[str], now: float) -> Sequence[Member]:
        kept = self._members.get((domain, etcd))
        if kept is None or now >= kept[0] + KEPT:
            members = storm_view.list_members(self._observing.tracked_nodes.values(), domain=domain, etcd=etcd, now=now)
            self._members = {key: one for key, one in self._members.items() if now < one[0] + KEPT}
            kept = self._members[domain, etcd] = (now, members)
        return kept[1]
