"""Which nodes a pod or a volume may be on by their labels and names (pure): ``component-helpers/scheduling/corev1``."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall.lab.controllers.view import Object
from lastcall.model.label_selector import Requirement

_NAME = "metadata.name"


def labels(node: Object) -> Mapping[str, str]:
    """Its labels."""
    return node["metadata"].get("labels") or {}


def wanted(pod: Object, node: Object) -> bool:
    """Whether ``nodeSelector`` and the required node affinity of a pod allow the node."""
    selector: Mapping[str, str] = pod["spec"].get("nodeSelector") or {}
    affinity = _affinity(pod)
    return selector.items() <= labels(node).items() and (affinity is None or matches(affinity, node))


def matches(selector: Mapping[str, Any], node: Object) -> bool:
    """A ``v1.NodeSelector``: one of its terms must hold; a term without any requirement never does."""
    return any(_holds(term, node) for term in selector.get("nodeSelectorTerms") or ())


def named(pod: Object) -> set[str] | None:
    """The only nodes that the pod's affinity allows by their names (as of DaemonSets); None if it is not about names."""
    terms = (_affinity(pod) or {}).get("nodeSelectorTerms") or ()
    result: set[str] = set()
    for term in terms:
        names = [set(one.get("values") or ()) for one in term.get("matchFields") or () if _is_name(one)]
        if not names:
            return None
        result |= set.intersection(*names)
    return result if terms else None


def _affinity(pod: Object) -> Mapping[str, Any] | None:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    found: Mapping[str, Any] | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return found


def _holds(term: Mapping[str, Any], node: Object) -> bool:
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    fields = {_NAME: node["metadata"]["name"]}
    met = _all(by_label, labels(node)) and _all(by_field, fields)
    return met and bool(by_label or by_field)


def _all(requirements: Sequence[Mapping[str, Any]], found: Mapping[str, str]) -> bool:
    read = (Requirement(one["key"], one["operator"], tuple(one.get("values") or ())) for one in requirements)
    return all(one.matches(found) for one in read)


def _is_name(requirement: Mapping[str, str]) -> bool:
    return requirement["key"] == _NAME and requirement["operator"] == "In"
