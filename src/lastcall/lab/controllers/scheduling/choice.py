"""The node of a pod: filters in the order of Kubernetes' default profile, then the node that is best (pure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from lastcall.lab.controllers import taints
from lastcall.lab.controllers.scheduling import neighbours, nodes, requests, volumes
from lastcall.lab.controllers.scheduling.rooms import Port, Rejection, Room, Verdict, ports
from lastcall.lab.controllers.view import Object, View, controller_of
from lastcall.model.tolerations import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration, tolerates, untolerated

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
_ANYWHERE = ("", "0.0.0.0", "::")
_NOT_NAMED = Verdict(Rejection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",)))


@dataclass(frozen=True)
class Candidate:
    """A pod that is to be scheduled, among the nodes that there are."""

    pod: Object
    rooms: Sequence[Room]
    view: View
    volumes: volumes.Wanted

    @cached_property
    def _tolerations(self) -> Sequence[Toleration]:
        return taints.tolerations_of(self.pod)

    @cached_property
    def _asks(self) -> requests.Amounts:
        return requests.of_pod(self.pod)

    @cached_property
    def _affinities(self) -> neighbours.Affinities:
        return neighbours.affinities(self.pod, self.rooms, self.view)

    @cached_property
    def _spreads(self) -> Sequence[neighbours.Spread]:
        return neighbours.spreads(self.pod, self.rooms)

    @cached_property
    def _names(self) -> set[str] | None:
        return nodes.named(self.pod)

    @cached_property
    def likeness(self) -> bytes:
        """The same for pods that every node judges alike; empty if others than the node have a say."""
        spec = self.pod["spec"]
        volumes = self.volumes.bound or self.volumes.unbound or self.volumes.blocked
        if volumes or spec.get("affinity") or self._spreads or self._affinities.closed:
            return b""
        known = [spec.get("tolerations"), spec.get("nodeSelector"), list(ports(self.pod)), self._asks]
        return msgspec.json.encode(known)

    def verdict(self, room: Room) -> Verdict:
        """Of a node: the first filter that says no; if none does, what speaks for it or against it."""
        if self._names is not None and room.name not in self._names:
            return _NOT_NAMED
        if rejection := next((no for no in self._filters(room) if no), None):
            return Verdict(rejection)
        advice = [taint for taint in taints.taints_of(room.node) if taint.effect == PREFER_NO_SCHEDULE]
        unwelcome = sum(not any(tolerates(one, taint) for one in self._tolerations) for taint in advice)
        load = requests.load(requests.total([room.guessed, requests.guessed(self._asks)]), room.capacity)
        return Verdict(None, unwelcome, (float(load), load))

    def kin(self, room: Room) -> int:
        """How many pods of the same owner a node has."""
        return room.owners[self._owner] if self._owner else 0

    def _filters(self, room: Room) -> Iterator[Rejection | None]:
        node = room.node
        cordoned = (node.get("spec") or {}).get("unschedulable")
        if cordoned and not any(tolerates(one, _CORDON) for one in self._tolerations):
            yield Rejection(("node(s) were unschedulable",))
        if untolerated(taints.taints_of(node), self._tolerations):
            yield Rejection(("node(s) had untolerated taint(s)",))
        if not nodes.wanted(self.pod, node):
            yield Rejection(("node(s) didn't match Pod's node affinity/selector",))
        if any(_clash(own, other) for own in ports(self.pod) for other in room.ports):
            yield Rejection(("node(s) didn't have free ports for the requested pod ports",), others=True)
        yield self._fit(room)
        yield self.volumes.rejection(room, self.view)
        yield next((no for one in self._spreads if (no := one.rejection(room))), None)
        yield self._affinities.rejection(room)

    def _fit(self, room: Room) -> Rejection | None:
        short = [] if len(room.pods) < room.capacity.get("pods", 0) else ["Too many pods"]
        never = False
        for name, amount in self._asks.items():
            has = room.capacity.get(name, 0)
            if amount and amount > has - room.used.get(name, 0):
                short.append(f"Insufficient {name}")
                never = never or amount > has
        return Rejection(tuple(short), others=not never) if short else None

    @cached_property
    def _owner(self) -> str:
        owner = controller_of(self.pod)
        return owner["uid"] if owner else ""


def _clash(one: Port, other: Port) -> bool:
    same_place = one[0] == other[0] or one[0] in _ANYWHERE or other[0] in _ANYWHERE
    return same_place and one[1:] == other[1:]
