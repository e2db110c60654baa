"""Node affinity of pods and volumes by labels and names (pure): ``component-helpers/scheduling/corev1``."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall.model.label_selector import Requirement
from lastcall_lab.controllers.framework.view import Object

_NAME = "metadata.name"


def node_labels(node: Object) -> Mapping[str, str]:
    """The node's labels."""
    return node["metadata"].get("labels") or {}


def fits_node_affinity(pod: Object, node: Object) -> bool:
    """Whether a pod's ``nodeSelector`` and required node affinity match the node."""
    selector: Mapping[str, str] = pod["spec"].get("nodeSelector") or {}
    affinity = _required_affinity(pod)
    return selector.items() <= node_labels(node).items() and (affinity is None or matches_node_selector(affinity, node))


def matches_node_selector(selector: Mapping[str, Any], node: Object) -> bool:
    """Matches a ``v1.NodeSelector``: one of its terms must match; a term without requirements never does."""
    return any(_term_holds(term, node) for term in selector.get("nodeSelectorTerms") or ())


def affinity_node_names(pod: Object) -> set[str] | None:
    """The only nodes that the pod's affinity allows by name (as for DaemonSets); None if it sets no names."""
    terms = (_required_affinity(pod) or {}).get("nodeSelectorTerms") or ()
    result: set[str] = set()
    for term in terms:
        names = [set(one.get("values") or ()) for one in term.get("matchFields") or () if _is_name_requirement(one)]
        if not names:
            return None
        result |= set.intersection(*names)
    return result if terms else None


def _required_affinity(pod: Object) -> Mapping[str, Any] | None:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    found: Mapping[str, Any] | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return found


def _term_holds(term: Mapping[str, Any], node: Object) -> bool:
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    fields = {_NAME: node["metadata"]["name"]}
    met = _all_hold(by_label, node_labels(node)) and _all_hold(by_field, fields)
    return met and bool(by_label or by_field)


def _all_hold(requirements: Sequence[Mapping[str, Any]], found: Mapping[str, str]) -> bool:
    read = (Requirement(one["key"], one["operator"], tuple(one.get("values") or ())) for one in requirements)
    return all(one.matches(found) for one in read)


def _is_name_requirement(requirement: Mapping[str, str]) -> bool:
    return requirement["key"] == _NAME and requirement["operator"] == "In"
