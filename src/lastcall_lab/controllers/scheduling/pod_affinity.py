"""Pod affinity, anti-affinity and topology spread (pure): ``interpodaffinity``, ``podtopologyspread``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.model.label_selector import Requirement, build_matcher, requirements_of, selector_matcher
from lastcall_lab.controllers.framework.view import Object, View
from lastcall_lab.controllers.objects import node_affinity
from lastcall_lab.controllers.scheduling.scheduling_nodes import NodeRejection, SchedulingNode

Domain = tuple[str, str]
"""A node label's key and value."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UNSPREAD = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True)
class PodAffinities:
    """The constraints that existing pods impose on a new one."""

    needed: Sequence[tuple[str, frozenset[Domain]]]
    """For each required term: its key, and the domains that satisfy it."""
    avoided: frozenset[Domain]
    keys: frozenset[str]
    """The anti-affinity terms of the new pod."""
    closed: frozenset[Domain]
    """Domains whose pods have anti-affinity to the new pod."""

    def reject(self, room: SchedulingNode) -> NodeRejection | None:
        """Why the node does not fit; None if it fits."""
        labels = node_affinity.node_labels(room.node)
        for key, met in self.needed:
            if (key, labels.get(key, "")) not in met:
                return NodeRejection(("node(s) didn't match pod affinity rules",))
        here = frozenset(labels.items())
        if here & self.avoided:
            return NodeRejection(("node(s) didn't match pod anti-affinity rules",), others=True)
        if here & self.closed:
            return NodeRejection(("node(s) didn't satisfy existing pods anti-affinity rules",), others=True)
        return None


def pod_affinities(pod: Object, rooms: Sequence[SchedulingNode], view: View) -> PodAffinities:
    """The constraints for a new pod. A term that the pod itself matches holds everywhere until another pod matches."""
    apart = list(_required_terms(pod, "podAntiAffinity"))
    closed = {
        domain
        for room in rooms
        for other in room.anti_affine_pods
        for term in _required_terms(other, "podAntiAffinity")
        if _term_matches(term, other, pod, view)
        for domain in _node_domain(room, term["topologyKey"])
    }
    return PodAffinities(
        needed=[_required_domains(term, pod, rooms, view) for term in _required_terms(pod, "podAffinity")],
        avoided=frozenset(domain for term in apart for domain in _term_domains(term, pod, rooms, view)),
        keys=frozenset(term["topologyKey"] for term in apart),
        closed=frozenset(closed),
    )


def _required_domains(
    term: Object, pod: Object, rooms: Sequence[SchedulingNode], view: View
) -> tuple[str, frozenset[Domain]]:
    key = term["topologyKey"]
    met = frozenset(_term_domains(term, pod, rooms, view))
    if not met and _term_matches(term, pod, pod, view):
        met = frozenset(domain for room in rooms for domain in _node_domain(room, key))
    return key, met


def _term_domains(term: Object, pod: Object, rooms: Sequence[SchedulingNode], view: View) -> Iterator[Domain]:
    for room in rooms:
        if any(_term_matches(term, pod, other, view) for other in room.pods):
            yield from _node_domain(room, term["topologyKey"])


def _node_domain(room: SchedulingNode, key: str) -> Iterable[Domain]:
    value = node_affinity.node_labels(room.node).get(key)
    return [] if value is None else [(key, value)]


def _required_terms(pod: Object, kind: str) -> Iterable[Object]:
    terms: Iterable[Object] = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or ()
    return terms


def _term_matches(term: Object, owner: Object, other: Object, view: View) -> bool:
    """Whether a term of ``owner`` selects the pod ``other``."""
    namespace = other["metadata"]["namespace"]
    listed, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if selector is not None:
        found = view.get("namespaces", "", namespace) or {"metadata": {}}
        near = namespace in listed or selector_matcher(selector)(found["metadata"].get("labels") or {})
    else:
        near = namespace in (listed or (owner["metadata"]["namespace"],))
    return near and selector_matcher(term.get("labelSelector"))(other["metadata"].get("labels") or {})


@dataclass(frozen=True)
class TopologySpread:
    """One spread constraint with the existing pods counted by the value of its label."""

    key: str
    skew: int
    own: int
    """1 if the new pod itself counts."""
    counts: Mapping[str, int]
    least: int

    def reject(self, room: SchedulingNode) -> NodeRejection | None:
        """Why the node does not fit; None if it fits."""
        value = node_affinity.node_labels(room.node).get(self.key)
        if value is None:
            return NodeRejection((f"{_UNSPREAD} (missing required label)",))
        if self.counts.get(value, 0) + self.own - self.least > self.skew:
            return NodeRejection((_UNSPREAD,), others=True)
        return None


def topology_spreads(pod: Object, rooms: Sequence[SchedulingNode]) -> list[TopologySpread]:
    """The hard constraints (DoNotSchedule). Counts nodes that have all their labels and that the pod may use."""
    found = pod["spec"].get("topologySpreadConstraints") or ()
    strict = [one for one in found if one["whenUnsatisfiable"] == "DoNotSchedule"]
    if not strict:
        return []
    keys = {one["topologyKey"] for one in strict}
    eligible = [room for room in rooms if keys <= node_affinity.node_labels(room.node).keys()]
    return [_topology_spread(one, pod, eligible) for one in strict]


def _topology_spread(constraint: Mapping[str, Any], pod: Object, rooms: Sequence[SchedulingNode]) -> TopologySpread:
    key, namespace = constraint["topologyKey"], pod["metadata"]["namespace"]
    own = pod["metadata"].get("labels") or {}
    same = [Requirement(name, "In", (own[name],)) for name in constraint.get("matchLabelKeys") or () if name in own]
    selector = constraint.get("labelSelector")
    selected = build_matcher([*requirements_of(selector), *same]) if selector is not None else selector_matcher(None)
    counts: dict[str, int] = {}
    for room in rooms:
        if constraint.get("nodeAffinityPolicy") == "Ignore" or node_affinity.fits_node_affinity(pod, room.node):
            alive = [one["metadata"] for one in room.pods if not one["metadata"].get("deletionTimestamp")]
            near = [one for one in alive if one["namespace"] == namespace and selected(one.get("labels") or {})]
            value = node_affinity.node_labels(room.node)[key]
            counts[value] = counts.get(value, 0) + len(near)
    few = len(counts) < (constraint.get("minDomains") or 1)
    least = 0 if few else min(counts.values(), default=0)
    return TopologySpread(key, constraint["maxSkew"], int(selected(own)), counts, least)
