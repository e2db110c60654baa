"""The controller's view of all nodes: converts watched changes to facts, and finds the nodes in trouble.

It keeps a few fields of each node and nothing about pods. Silence is detected by time: each node has a time at which it
becomes overdue, and ``touch_late_nodes`` returns when to check next.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lastcall.failover.evidence import node_shutdown_facts, watchdog_observation
from lastcall.failover.evidence.clock_jumps import ClockJumps
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.evidence.outage_reports import OutageReportLog
from lastcall.failover.evidence.peer_reports import PeerReports
from lastcall.failover.evidence.revisions import revision_number
from lastcall.failover.evidence.storage_leases import StorageLeaseReports
from lastcall.failover.evidence.timer_queue import TimerQueue
from lastcall.failover.evidence.watchdog_observation import Reachability
from lastcall.failover.limits import duplicate_nodes, policy_choice
from lastcall.failover.limits.duplicate_nodes import TraceIndex
from lastcall.failover.limits.node_indexes import NodeIndexes
from lastcall.failover.limits.tracked_node import TrackedNode
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Fencer
from lastcall.model.observed import (
    OPTIONAL,
    ObjectChange,
    WatchedAttachment,
    WatchedKind,
    WatchedLease,
    WatchedNode,
    WatchedShutdown,
)

_CONTACTS = 3600.0
"""Seconds for which the number of reachable nodes is remembered."""


class ClusterView:
    """The view of all nodes. ``touched`` is called with the name of each node that changed by more than a heartbeat."""

    def __init__(self, touched: Callable[[str], None]) -> None:
        self.clock = ClockJumps()
        self.contacts: list[Reachability] = []
        self.calmness = OutageReportLog()
        self.storage = StorageLeaseReports()
        self.most_lost: float | None = None
        """The last time at which more than half of all nodes were silent at once; None: never."""
        self._touched = touched
        self._knots: dict[str, TrackedNode] = {}
        self._leases: dict[str, WatchedLease] = {}
        """Leases of nodes that do not exist (yet)."""
        self._watchdogs: dict[str, watchdog_observation.WatchdogObservation] = {}
        self._hearsay = PeerReports()
        self._words: dict[str, node_shutdown_facts.ObservedShutdown] = {}
        self._attachments: dict[str, dict[str, WatchedAttachment]] = {}
        self._places: dict[str, str] = {}
        self._policies: dict[str, Any] = {}
        self._entries: Sequence[policy_choice.PolicyEntry] = ()
        self._lookalikes = TraceIndex()
        self._noted = NodeIndexes()
        self._synced: set[WatchedKind] = set()
        self._alarms = TimerQueue()

    # -- hearing -------------------------------------------------------------------------------------------------------

    def handle_change(self, heard: ObjectChange, now: float) -> None:
        """Applies a change of a watched object."""
        if not heard.name:
            if heard.what is WatchedKind.LEASES and heard.what not in self._synced:
                self._start_observing_leases(now)
            self._synced.add(heard.what)
            self._update_roster()
            if self.has_synced:
                self._touch_all()
            return
        match heard.what:
            case WatchedKind.NODES:
                self._handle_node(heard.name, heard.now, now)
            case WatchedKind.LEASES:
                self._handle_lease(heard.name, heard.now, now)
            case WatchedKind.WATCHDOGS:
                self._handle_watchdog(heard.name, heard.now, now)
            case WatchedKind.SHUTDOWNS:
                self._handle_shutdown(heard.name, heard.now, now)
            case WatchedKind.ATTACHMENTS:
                self._handle_attachment(heard.name, heard.now)
            case WatchedKind.POLICIES:
                self._handle_policy(heard.name, heard.now)

    def _start_observing_leases(self, now: float) -> None:
        """Restarts observation: nodes may be known before the first list of Leases; their silence is no evidence."""
        for knot in self._knots.values():
            knot.seen.restart_observation(now)

    def _handle_node(self, name: str, node: Any, now: float) -> None:
        before = self._knots.get(name)
        if node is None:
            if before:
                del self._knots[name]
                self._lookalikes.update_node(name, frozenset())
                self._noted.update_node(name, None)
                before.seen.note_deletion(now)
                self._update_roster()
                self._touched(name)
            return
        assert isinstance(node, WatchedNode)
        seen = before.seen if before else NodeObservations(name, now)
        if before is None and name in self._leases:
            seen.observe_lease(self._leases.pop(name), now, first=True)
        lived = seen.observe_node(node, now)
        same = before is not None and before.node.metadata.labels == node.metadata.labels
        choice = before.choice if before and same else policy_choice.choose_policy(node.metadata.labels, self._entries)
        knot = self._knots[name] = TrackedNode(node, seen, choice)
        if before is None or choice != before.choice or before.node.fence_node != node.fence_node:
            self._index_traces(knot)
        self._noted.update_node(name, node)
        if before is None:
            self._update_roster()
        if before is None or choice != before.choice:
            self._alarms.schedule(name, seen.quiet_since + knot.suspect_seconds)
        if before is None or not lived or _has_changed(before.node, node):
            self._touched(name)

    def _handle_lease(self, name: str, lease: Any, now: float) -> None:
        if lease is None:
            self._leases.pop(name, None)
            return
        assert isinstance(lease, WatchedLease)
        knot = self._knots.get(name)
        if knot is None:
            self._leases[name] = lease
            return
        troubled = knot.is_in_trouble(now)
        knot.seen.observe_lease(lease, now, first=WatchedKind.LEASES not in self._synced)
        if troubled:
            self._touched(name)

    def _handle_watchdog(self, name: str, lease: Any, now: float) -> None:
        if lease is None:
            self._watchdogs.pop(name, None)
            self.calmness.observe_promise(name, None, now)
            self._hearsay.forget_node(name)
            self.storage.forget_node(name)
        else:
            assert isinstance(lease, WatchedLease)
            self.observe_watchdog(name, lease, now)

    def _update_roster(self) -> None:
        """Records the set of nodes once it is complete; agents count it too."""
        if WatchedKind.NODES in self._synced:
            self.calmness.rosters.record_nodes(self._knots)

    def _handle_shutdown(self, name: str, shutdown: Any, now: float) -> None:
        if shutdown is None:
            self._words.pop(name, None)
        else:
            assert isinstance(shutdown, WatchedShutdown)
            self.observe_shutdown(name, shutdown, now)
        if self.is_in_trouble(name, now):
            self._touched(name)

    def _handle_attachment(self, name: str, attachment: Any) -> None:
        place = self._places.pop(name, "")
        if place:
            self._attachments[place].pop(name, None)
            if not self._attachments[place]:
                del self._attachments[place]
        if attachment is not None:
            assert isinstance(attachment, WatchedAttachment)
            place = self._places[name] = attachment.spec.node_name
            self._attachments.setdefault(place, {})[name] = attachment
        self._touched(place)

    def _handle_policy(self, name: str, policy: Any) -> None:
        before = self._entries
        if policy is None:
            self._policies.pop(name, None)
        else:
            self._policies[name] = policy
        self._entries = policy_choice.ordered_entries(self._policies.values())
        if policy_choice.are_equivalent(before, self._entries):
            return
        for node, knot in self._knots.items():
            chosen = replace(knot, choice=policy_choice.choose_policy(knot.node.metadata.labels, self._entries))
            self._knots[node] = chosen
            self._index_traces(chosen)
        self._touch_all()

    def _index_traces(self, knot: TrackedNode) -> None:
        """Indexes the traces by which the Node may be recognized under another name."""
        every = (entry.policy for entry in self._entries if entry.policy)
        self._lookalikes.update_node(
            knot.seen.name, duplicate_nodes.node_traces(knot.node.fence_node, knot.choice.policy, every)
        )

    def _touch_all(self) -> None:
        for name, knot in self._knots.items():
            self._alarms.schedule(name, knot.seen.quiet_since + knot.suspect_seconds)
            self._touched(name)

    # -- asking --------------------------------------------------------------------------------------------------------

    @property
    def has_synced(self) -> bool:
        """Whether all kinds have been listed once."""
        return not self.waiting_for

    @property
    def waiting_for(self) -> str:
        """The kinds that have not been listed yet."""
        return ", ".join(one.value for one in WatchedKind if one not in {*self._synced, *OPTIONAL})

    @property
    def tracked_nodes(self) -> Mapping[str, TrackedNode]:
        """All nodes by name."""
        return self._knots

    @property
    def node_indexes(self) -> NodeIndexes:
        """The indexes of nodes by recorded fencings and by system UUID."""
        return self._noted

    @property
    def policy_objects(self) -> Mapping[str, Any]:
        """The policy objects by name, as delivered."""
        return self._policies

    def is_in_trouble(self, name: str, now: float) -> bool:
        """Whether the node exists and is in trouble."""
        knot = self._knots.get(name)
        return knot is not None and knot.is_in_trouble(now)

    def attachments_of(self, name: str) -> Iterable[WatchedAttachment]:
        """The VolumeAttachments of a node."""
        return self._attachments.get(name, {}).values()

    def watchdog_of(self, name: str) -> watchdog_observation.WatchdogObservation | None:
        """The last observation of a node's watchdog Lease; None without one."""
        return self._watchdogs.get(name)

    def shutdown_of(self, name: str) -> node_shutdown_facts.ObservedShutdown | None:
        """A node's last shutdown announcement; None without one."""
        return self._words.get(name)

    def observe_watchdog(self, name: str, lease: WatchedLease, now: float) -> watchdog_observation.WatchdogObservation:
        """Records a node's watchdog Lease as read."""
        watched = self._watchdogs[name] = watchdog_observation.observe_lease(
            self._watchdogs.get(name), annotations=lease.metadata.annotations, renewed=lease.spec.renew_time, now=now
        )
        self.calmness.observe_promise(name, watched.promise, now)
        revision = revision_number(lease.metadata.resource_version)
        for node in self.storage.observe_lease(name, lease.metadata.annotations, now, revision=revision):
            if self.is_in_trouble(node, now):
                self._touched(node)
        for node, fact in self._hearsay.observe_lease(lease, now):
            knot = self._knots.get(node)
            if knot and knot.seen.observe_peer_report(fact) and knot.is_in_trouble(now):
                self._touched(node)
        return watched

    def observe_shutdown(
        self,
        name: str,
        shutdown: node_shutdown_facts.Said,
        now: float,
        *,
        since: node_shutdown_facts.ObservedShutdown | None = None,
    ) -> None:
        """Records a node's shutdown announcement; ``since``: the last observation when the read began."""
        first = WatchedKind.SHUTDOWNS not in self._synced
        self._words[name] = node_shutdown_facts.observe_shutdown(
            self._words.get(name), shutdown, now, first=first, since=since
        )

    def find_rivals(self, node: FenceNode, fencer: Fencer, policy: FencePolicy) -> Iterable[str]:
        """The other Nodes that a fencer of this node may hit, silent or not."""
        return duplicate_nodes.find_rivals(node, fencer, policy, self._lookalikes)

    def fencer_refusal(self, node: FenceNode, fencer: Fencer, policy: FencePolicy, now: float) -> str:
        """Why a fencer of this node is not used: another Node that it may hit shows signs of life.

        Empty if none does.
        """
        return duplicate_nodes.fencer_refusal(
            node, fencer, policy, self._lookalikes, lambda name: not self._knots[name].is_silent(now)
        )

    # -- time ----------------------------------------------------------------------------------------------------------

    def touch_late_nodes(self, now: float) -> float | None:
        """Touches the nodes that have become overdue; returns when to check again.

        A node with a sign of life is postponed.
        """
        for name in self._alarms.pop_due(now):
            knot = self._knots.get(name)
            if knot is None:
                continue
            silent = knot.is_silent(now)
            if silent:
                self._touched(name)
            self._alarms.schedule(name, (now if silent else knot.seen.quiet_since) + knot.suspect_seconds)
        return self._alarms.next_due

    def count_reachable(self, now: float) -> None:
        """Records how many nodes the API server has contact with; watchdog proofs and the storm limits depend on it."""
        reachable = sum(not knot.is_silent(now) for knot in self._knots.values())
        nodes = len(self._knots)
        if 2 * reachable < nodes:
            self.most_lost = now
        last = self.contacts[-1] if self.contacts else None
        if last is None or (last.reachable, last.nodes) != (reachable, nodes):
            self.contacts.append(Reachability(at=now, reachable=reachable, nodes=nodes))
        while len(self.contacts) > 1 and self.contacts[1].at < now - _CONTACTS:
            del self.contacts[0]


def _has_changed(before: WatchedNode, now: WatchedNode) -> bool:
    """Whether more than a heartbeat has changed."""
    return (
        before.mark_text != now.mark_text
        or before.spec != now.spec
        or before.ready_condition.status != now.ready_condition.status
        or before.status.node_info != now.status.node_info
        or before.metadata.labels != now.metadata.labels
        or before.metadata.uid != now.metadata.uid
    )
