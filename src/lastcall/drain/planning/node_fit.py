"""Which nodes a pod or a volume may be on: selectors, affinities, taints (pure)."""

from collections.abc import Sequence

from lastcall.model.drain_facts import DrainNode, DrainPod, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from lastcall.model.label_selector import Requirement
from lastcall.model.tolerations import first_untolerated


def may_run_on(pod: DrainPod, node: DrainNode) -> bool:
    """Whether the scheduler may choose the node, by its labels and taints."""
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity and affinity.required and not selects_node(affinity.required, node):
        return False
    return first_untolerated(node.spec.taints or (), pod.spec.tolerations or ()) is None


def selects_node(selector: NodeSelector, node: DrainNode) -> bool:
    """Whether one of its terms matches the node (``component-helpers/scheduling/corev1/nodeaffinity``)."""
    return any(_matches_term(term, node) for term in selector.node_selector_terms or ())


def _matches_term(term: NodeSelectorTerm, node: DrainNode) -> bool:
    labels, fields = term.match_expressions or (), term.match_fields or ()
    if not labels and not fields:
        return False
    return _meets(labels, node.metadata.labels or {}) and _meets(fields, {"metadata.name": node.name})


def _meets(requirements: Sequence[NodeSelectorRequirement], values: dict[str, str]) -> bool:
    return all(Requirement(one.key, one.operator, one.values or ("",)).matches(values) for one in requirements)
