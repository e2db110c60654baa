"""What the controller knows of all nodes: from what it hears to facts, and to who is in trouble.

It keeps a few fields of each node and nothing of pods. That something is not heard of any more is noticed by time: each
node has a moment at which it is late, and ``late`` says when the next one is to be looked at.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lastcall.failover.knowing import armed, last_words
from lastcall.failover.knowing.alarms import Alarms
from lastcall.failover.knowing.armed import Contact
from lastcall.failover.knowing.calm import Calmness
from lastcall.failover.knowing.hearsay import Hearsay
from lastcall.failover.knowing.own_clock import OwnClock
from lastcall.failover.knowing.revisions import number_of
from lastcall.failover.knowing.sightings import Sightings
from lastcall.failover.knowing.storage_leases import StorageLeases
from lastcall.failover.limits import lookalikes, policies
from lastcall.failover.limits.knot import Knot
from lastcall.failover.limits.lookalikes import Lookalikes
from lastcall.failover.limits.noted import Noted
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Fencer
from lastcall.model.observed import (
    OPTIONAL,
    Heard,
    Watched,
    WatchedAttachment,
    WatchedLease,
    WatchedNode,
    WatchedShutdown,
)

_CONTACTS = 3600.0
"""Seconds for which it is known how many nodes the API server had heard from."""


class Observing:
    """``touched`` hears the name of each node about which something is new, but nothing of mere heartbeats."""

    def __init__(self, touched: Callable[[str], None]) -> None:
        self.clock = OwnClock()
        self.contacts: list[Contact] = []
        self.calmness = Calmness()
        self.storage = StorageLeases()
        self.most_lost: float | None = None
        """When more than half of all nodes were last seen to be silent at once; None: never."""
        self._touched = touched
        self._knots: dict[str, Knot] = {}
        self._leases: dict[str, WatchedLease] = {}
        """Of nodes that are not there (yet)."""
        self._watchdogs: dict[str, armed.Watched] = {}
        self._hearsay = Hearsay()
        self._words: dict[str, last_words.Heard] = {}
        self._attachments: dict[str, dict[str, WatchedAttachment]] = {}
        self._places: dict[str, str] = {}
        self._policies: dict[str, Any] = {}
        self._entries: Sequence[policies.Entry] = ()
        self._lookalikes = Lookalikes()
        self._noted = Noted()
        self._synced: set[Watched] = set()
        self._alarms = Alarms()

    # -- hearing -------------------------------------------------------------------------------------------------------

    def hear(self, heard: Heard, now: float) -> None:
        """Something that is watched is as it is told now."""
        if not heard.name:
            if heard.what is Watched.LEASES and heard.what not in self._synced:
                self._begin_to_listen(now)
            self._synced.add(heard.what)
            self._count_nodes()
            if self.ready:
                self._touch_all()
            return
        match heard.what:
            case Watched.NODES:
                self._hear_node(heard.name, heard.now, now)
            case Watched.LEASES:
                self._hear_lease(heard.name, heard.now, now)
            case Watched.WATCHDOGS:
                self._hear_watchdog(heard.name, heard.now, now)
            case Watched.SHUTDOWNS:
                self._hear_shutdown(heard.name, heard.now, now)
            case Watched.ATTACHMENTS:
                self._hear_attachment(heard.name, heard.now)
            case Watched.POLICIES:
                self._hear_policy(heard.name, heard.now)

    def _begin_to_listen(self, now: float) -> None:
        """Nodes may have been known for long, if the API server was away when Leases were to be listed: none was silent."""
        for knot in self._knots.values():
            knot.seen.followed(now)

    def _hear_node(self, name: str, node: Any, now: float) -> None:
        before = self._knots.get(name)
        if node is None:
            if before:
                del self._knots[name]
                self._lookalikes.put(name, frozenset())
                self._noted.put(name, None)
                before.seen.gone(now)
                self._count_nodes()
                self._touched(name)
            return
        assert isinstance(node, WatchedNode)
        seen = before.seen if before else Sightings(name, now)
        if before is None and name in self._leases:
            seen.lease(self._leases.pop(name), now, first=True)
        lived = seen.node(node, now)
        same = before is not None and before.node.metadata.labels == node.metadata.labels
        choice = before.choice if before and same else policies.choose(node.metadata.labels, self._entries)
        knot = self._knots[name] = Knot(node, seen, choice)
        if before is None or choice != before.choice or before.node.fence_node != node.fence_node:
            self._note_traces(knot)
        self._noted.put(name, node)
        if before is None:
            self._count_nodes()
        if before is None or choice != before.choice:
            self._alarms.set(name, seen.quiet_since + knot.patience)
        if before is None or not lived or _differ(before.node, node):
            self._touched(name)

    def _hear_lease(self, name: str, lease: Any, now: float) -> None:
        if lease is None:
            self._leases.pop(name, None)
            return
        assert isinstance(lease, WatchedLease)
        knot = self._knots.get(name)
        if knot is None:
            self._leases[name] = lease
            return
        troubled = knot.in_trouble(now)
        knot.seen.lease(lease, now, first=Watched.LEASES not in self._synced)
        if troubled:
            self._touched(name)

    def _hear_watchdog(self, name: str, lease: Any, now: float) -> None:
        if lease is None:
            self._watchdogs.pop(name, None)
            self.calmness.hear(name, None, now)
            self._hearsay.forget(name)
            self.storage.forget(name)
        else:
            assert isinstance(lease, WatchedLease)
            self.look_at_watchdog(name, lease, now)

    def _count_nodes(self) -> None:
        """Which nodes there are, once that is known: agents count them too."""
        if Watched.NODES in self._synced:
            self.calmness.rosters.now(self._knots)

    def _hear_shutdown(self, name: str, shutdown: Any, now: float) -> None:
        if shutdown is None:
            self._words.pop(name, None)
        else:
            assert isinstance(shutdown, WatchedShutdown)
            self.look_at_shutdown(name, shutdown, now)
        if self.in_trouble(name, now):
            self._touched(name)

    def _hear_attachment(self, name: str, attachment: Any) -> None:
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

    def _hear_policy(self, name: str, policy: Any) -> None:
        before = self._entries
        if policy is None:
            self._policies.pop(name, None)
        else:
            self._policies[name] = policy
        self._entries = policies.entries(self._policies.values())
        if policies.same(before, self._entries):
            return
        for node, knot in self._knots.items():
            chosen = replace(knot, choice=policies.choose(knot.node.metadata.labels, self._entries))
            self._knots[node] = chosen
            self._note_traces(chosen)
        self._touch_all()

    def _note_traces(self, knot: Knot) -> None:
        """By what the Node may be known again under another name."""
        every = (entry.policy for entry in self._entries if entry.policy)
        self._lookalikes.put(knot.seen.name, lookalikes.traces(knot.node.fence_node, knot.choice.policy, every))

    def _touch_all(self) -> None:
        for name, knot in self._knots.items():
            self._alarms.set(name, knot.seen.quiet_since + knot.patience)
            self._touched(name)

    # -- asking --------------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether all that is there has been told once."""
        return not self.waiting_for

    @property
    def waiting_for(self) -> str:
        """What has not been told yet."""
        return ", ".join(one.value for one in Watched if one not in {*self._synced, *OPTIONAL})

    @property
    def knots(self) -> Mapping[str, Knot]:
        """All nodes by name."""
        return self._knots

    @property
    def noted(self) -> Noted:
        """Which of them tell of fencings, and which show a system UUID."""
        return self._noted

    @property
    def policies(self) -> Mapping[str, Any]:
        """The policy objects by name, as they were told."""
        return self._policies

    def in_trouble(self, name: str, now: float) -> bool:
        """Whether a node is there and in trouble."""
        knot = self._knots.get(name)
        return knot is not None and knot.in_trouble(now)

    def attachments(self, name: str) -> Iterable[WatchedAttachment]:
        """Of a node."""
        return self._attachments.get(name, {}).values()

    def watchdog(self, name: str) -> armed.Watched | None:
        """What a node's own Lease says of its watchdog; None if it has none."""
        return self._watchdogs.get(name)

    def word(self, name: str) -> last_words.Heard | None:
        """What a node has said last of its going down; None if it has said nothing."""
        return self._words.get(name)

    def look_at_watchdog(self, name: str, lease: WatchedLease, now: float) -> armed.Watched:
        """A node's own Lease as it was read."""
        watched = self._watchdogs[name] = armed.looked(
            self._watchdogs.get(name), annotations=lease.metadata.annotations, renewed=lease.spec.renew_time, now=now
        )
        self.calmness.hear(name, watched.promise, now)
        revision = number_of(lease.metadata.resource_version)
        for node in self.storage.hear(name, lease.metadata.annotations, now, revision=revision):
            if self.in_trouble(node, now):
                self._touched(node)
        for node, fact in self._hearsay.hear(lease, now):
            knot = self._knots.get(node)
            if knot and knot.seen.peer(fact) and knot.in_trouble(now):
                self._touched(node)
        return watched

    def look_at_shutdown(
        self, name: str, shutdown: last_words.Said, now: float, *, since: last_words.Heard | None = None
    ) -> None:
        """A node's own word as it was told, or read; ``since``: what was known of it when that was asked for."""
        first = Watched.SHUTDOWNS not in self._synced
        self._words[name] = last_words.heard(self._words.get(name), shutdown, now, first=first, since=since)

    def rivals(self, node: FenceNode, fencer: Fencer, policy: FencePolicy) -> Iterable[str]:
        """The other Nodes that a fencer of ``node`` may strike, whether they are heard of or not."""
        return lookalikes.rivals(node, fencer, policy, self._lookalikes)

    def refusal(self, node: FenceNode, fencer: Fencer, policy: FencePolicy, now: float) -> str:
        """Why a fencer of ``node`` is not used: another Node that it may strike is heard of. Empty if none is."""
        return lookalikes.refusal(
            node, fencer, policy, self._lookalikes, lambda name: not self._knots[name].silent(now)
        )

    # -- time ----------------------------------------------------------------------------------------------------------

    def late(self, now: float) -> float | None:
        """Touches the nodes that have become late by ``now``; when to ask again. A node that was heard of is put off."""
        for name in self._alarms.due(now):
            knot = self._knots.get(name)
            if knot is None:
                continue
            silent = knot.silent(now)
            if silent:
                self._touched(name)
            self._alarms.set(name, (now if silent else knot.seen.quiet_since) + knot.patience)
        return self._alarms.next

    def count(self, now: float) -> None:
        """Notes how many nodes the API server has heard from: what watchdogs prove, and who may be fenced, depends on it."""
        reachable = sum(not knot.silent(now) for knot in self._knots.values())
        nodes = len(self._knots)
        if 2 * reachable < nodes:
            self.most_lost = now
        last = self.contacts[-1] if self.contacts else None
        if last is None or (last.reachable, last.nodes) != (reachable, nodes):
            self.contacts.append(Contact(at=now, reachable=reachable, nodes=nodes))
        while len(self.contacts) > 1 and self.contacts[1].at < now - _CONTACTS:
            del self.contacts[0]


def _differ(before: WatchedNode, now: WatchedNode) -> bool:
    """Whether more than a heartbeat has changed."""
    return (
        before.mark != now.mark
        or before.spec != now.spec
        or before.ready.status != now.ready.status
        or before.status.node_info != now.status.node_info
        or before.metadata.labels != now.metadata.labels
        or before.metadata.uid != now.metadata.uid
    )
