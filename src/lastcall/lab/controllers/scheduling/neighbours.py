"""Pods that are to be apart, together, or evenly spread (pure): ``interpodaffinity``, ``podtopologyspread``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.lab.controllers.scheduling import nodes
from lastcall.lab.controllers.scheduling.rooms import Rejection, Room
from lastcall.lab.controllers.view import Object, View
from lastcall.model.label_selector import Requirement, labels_of, matcher, requirements_of

Domain = tuple[str, str]
"""The key of a node's label, and its value."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UNSPREAD = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True)
class Affinities:
    """What the pods that are there mean for a new one."""

    needed: Sequence[tuple[str, frozenset[Domain]]]
    """For each required term: its key, and the domains in which it is met."""
    avoided: frozenset[Domain]
    keys: frozenset[str]
    """Of the terms by which the new pod avoids others."""
    closed: frozenset[Domain]
    """Domains whose pods want no such pod beside them."""

    def rejection(self, room: Room) -> Rejection | None:
        """Why not there; None if nothing speaks against it."""
        labels = nodes.labels(room.node)
        for key, met in self.needed:
            if (key, labels.get(key, "")) not in met:
                return Rejection(("node(s) didn't match pod affinity rules",))
        here = frozenset(labels.items())
        if here & self.avoided:
            return Rejection(("node(s) didn't match pod anti-affinity rules",), others=True)
        if here & self.closed:
            return Rejection(("node(s) didn't satisfy existing pods anti-affinity rules",), others=True)
        return None


def affinities(pod: Object, rooms: Sequence[Room], view: View) -> Affinities:
    """For a new pod. A term that the pod itself would meet holds everywhere while no other pod meets it."""
    apart = list(_terms(pod, "podAntiAffinity"))
    closed = {
        domain
        for room in rooms
        for other in room.choosy
        for term in _terms(other, "podAntiAffinity")
        if _meant(term, other, pod, view)
        for domain in _domain(room, term["topologyKey"])
    }
    return Affinities(
        needed=[_needed(term, pod, rooms, view) for term in _terms(pod, "podAffinity")],
        avoided=frozenset(domain for term in apart for domain in _where(term, pod, rooms, view)),
        keys=frozenset(term["topologyKey"] for term in apart),
        closed=frozenset(closed),
    )


def _needed(term: Object, pod: Object, rooms: Sequence[Room], view: View) -> tuple[str, frozenset[Domain]]:
    key = term["topologyKey"]
    met = frozenset(_where(term, pod, rooms, view))
    if not met and _meant(term, pod, pod, view):
        met = frozenset(domain for room in rooms for domain in _domain(room, key))
    return key, met


def _where(term: Object, pod: Object, rooms: Sequence[Room], view: View) -> Iterator[Domain]:
    for room in rooms:
        if any(_meant(term, pod, other, view) for other in room.pods):
            yield from _domain(room, term["topologyKey"])


def _domain(room: Room, key: str) -> Iterable[Domain]:
    value = nodes.labels(room.node).get(key)
    return [] if value is None else [(key, value)]


def _terms(pod: Object, kind: str) -> Iterable[Object]:
    terms: Iterable[Object] = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or ()
    return terms


def _meant(term: Object, owner: Object, other: Object, view: View) -> bool:
    """Whether a term of ``owner`` is about the pod ``other``."""
    namespace = other["metadata"]["namespace"]
    listed, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if selector is not None:
        found = view.get("namespaces", "", namespace) or {"metadata": {}}
        near = namespace in listed or labels_of(selector)(found["metadata"].get("labels") or {})
    else:
        near = namespace in (listed or (owner["metadata"]["namespace"],))
    return near and labels_of(term.get("labelSelector"))(other["metadata"].get("labels") or {})


@dataclass(frozen=True)
class Spread:
    """One constraint with the pods that are counted already, by the value of its label."""

    key: str
    skew: int
    own: int
    """1 if the new pod counts too."""
    counts: Mapping[str, int]
    least: int

    def rejection(self, room: Room) -> Rejection | None:
        """Why not there; None if nothing speaks against it."""
        value = nodes.labels(room.node).get(self.key)
        if value is None:
            return Rejection((f"{_UNSPREAD} (missing required label)",))
        if self.counts.get(value, 0) + self.own - self.least > self.skew:
            return Rejection((_UNSPREAD,), others=True)
        return None


def spreads(pod: Object, rooms: Sequence[Room]) -> list[Spread]:
    """The constraints that may not be broken. Nodes count that have all their labels and that the pod may be on."""
    found = pod["spec"].get("topologySpreadConstraints") or ()
    strict = [one for one in found if one["whenUnsatisfiable"] == "DoNotSchedule"]
    if not strict:
        return []
    keys = {one["topologyKey"] for one in strict}
    eligible = [room for room in rooms if keys <= nodes.labels(room.node).keys()]
    return [_spread(one, pod, eligible) for one in strict]


def _spread(constraint: Mapping[str, Any], pod: Object, rooms: Sequence[Room]) -> Spread:
    key, namespace = constraint["topologyKey"], pod["metadata"]["namespace"]
    own = pod["metadata"].get("labels") or {}
    same = [Requirement(name, "In", (own[name],)) for name in constraint.get("matchLabelKeys") or () if name in own]
    selector = constraint.get("labelSelector")
    selected = matcher([*requirements_of(selector), *same]) if selector is not None else labels_of(None)
    counts: dict[str, int] = {}
    for room in rooms:
        if constraint.get("nodeAffinityPolicy") == "Ignore" or nodes.wanted(pod, room.node):
            alive = [one["metadata"] for one in room.pods if not one["metadata"].get("deletionTimestamp")]
            near = [one for one in alive if one["namespace"] == namespace and selected(one.get("labels") or {})]
            value = nodes.labels(room.node)[key]
            counts[value] = counts.get(value, 0) + len(near)
    few = len(counts) < (constraint.get("minDomains") or 1)
    least = 0 if few else min(counts.values(), default=0)
    return Spread(key, constraint["maxSkew"], int(selected(own)), counts, least)
