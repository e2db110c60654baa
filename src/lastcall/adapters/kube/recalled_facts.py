"""Facts of the guard that were recalled a moment ago: as long as nothing was read anew, they are the same object."""

from typing import NamedTuple

from msgspec.structs import replace

from lastcall.model.guard_facts import GuardedNode, GuardFacts
from lastcall.ports.node import Clock

KEPT_SECONDS = 0.25
"""So long facts are not looked for again; when they are recalled they are younger by that than they may be."""

_MOST = 512
"""Namespaces; all are forgotten beyond them."""


class _NodeFacts(NamedTuple):
    """``until`` is a boottime."""

    facts: GuardFacts
    until: float


class _NamespaceFacts(NamedTuple):
    """What rests on one answer about a namespace. It is forgotten with that: facts of a large namespace have megabytes."""

    around: GuardFacts
    by_node: dict[str, _NodeFacts]


class RecalledFacts:
    """The last facts of each namespace and node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, _NamespaceFacts] = {}

    def compose_facts(self, namespace: str, node: str, around: GuardFacts, found: GuardedNode | None) -> GuardFacts:
        """The facts of a namespace with one node, both as they are remembered now. ``found`` None: there is no such node."""
        known = self._known.get(namespace)
        if known is None or known.around is not around:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[namespace] = _NamespaceFacts(around, {})
        before = known.by_node.get(node)
        if before and before.facts.nodes.get(node) is found:
            facts = before.facts
        else:
            facts = replace(around, nodes={node: found} if found else {})
        known.by_node[node] = _NodeFacts(facts, self._clock.boottime() + KEPT_SECONDS)
        return facts

    def find(self, namespace: str, node: str) -> GuardFacts | None:
        """The last facts, if they were composed at most ``KEPT_SECONDS`` ago."""
        known = self._known.get(namespace)
        found = known.by_node.get(node) if known else None
        return found.facts if found and self._clock.boottime() < found.until else None

    def forget(self, namespace: str) -> None:
        """Its facts have to be looked for again."""
        self._known.pop(namespace, None)
