"""An index by labels, so that Services and budgets need not scan tens of thousands of pods."""

from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]
Place = tuple[str, str]
_Pair = tuple[str, str, str]

BY_LABEL = ("pods", "endpointslices.discovery.k8s.io")
_SET_BASED = {"matchLabels", "matchExpressions"}

BY_SELECTOR = ("services", "poddisruptionbudgets.policy")


class LabelIndex:
    """Objects of one resource by each label, or selecting objects by one pair of their selector."""

    def __init__(self, *, selectors: bool) -> None:
        self._keys = _selector_pairs if selectors else _label_pairs
        self._found: dict[_Pair, dict[Place, Object]] = {}

    def add(self, place: Place, obj: Object) -> None:
        """Adds a new object."""
        for key in self._keys(place, obj):
            self._found.setdefault(key, {})[place] = obj

    def remove(self, place: Place, obj: Object) -> None:
        """Removes an object, given as it was added."""
        for key in self._keys(place, obj):
            found = self._found[key]
            del found[place]
            if not found:
                del self._found[key]

    def with_labels(self, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """The objects that have all of these labels (at least one), in order."""
        sets = [self._found.get((namespace, *pair), {}) for pair in labels.items()]
        places = min(sets, key=len)
        return [places[one] for one in sorted(places) if all(one in others for others in sets)]

    def selecting_labels(self, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """Candidates that may select these labels, in order: a superset of those that do."""
        found: dict[Place, Object] = dict(self._found.get((namespace, "", ""), {}))
        for pair in labels.items():
            found |= self._found.get((namespace, *pair), {})
        return [found[one] for one in sorted(found)]


def _label_pairs(place: Place, obj: Object) -> Iterator[_Pair]:
    for name, value in (obj["metadata"].get("labels") or {}).items():
        yield place[0], name, value


def _selector_pairs(place: Place, obj: Object) -> Iterator[_Pair]:
    """A match needs all pairs, so indexing one is enough; the empty pair stands for a selector without pairs."""
    selector = obj["spec"].get("selector") or {}
    pairs: Mapping[str, Any] = selector.get("matchLabels") or {} if _SET_BASED & selector.keys() else selector
    yield (place[0], *min(pairs.items(), default=("", "")))
