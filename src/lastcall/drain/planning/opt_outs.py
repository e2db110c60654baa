"""Pods and Nodes that other tools were told to leave alone, by annotation or label (pure).

A pod that has finished or is being deleted holds nothing: the tools themselves see it so (``IsDisruptable`` of Karpenter,
the rule ``terminal`` of cluster-autoscaler).
"""

from collections.abc import Iterator

from lastcall.model.base import Facts
from lastcall.model.drain_facts import DrainNode
from lastcall.model.pods import Pod
from lastcall.names import CLUSTER_API_DRAIN, KARPENTER_DO_NOT_DISRUPT, PREFER_NO_EVICTION, SAFE_TO_EVICT

IGNORE_OPT_OUTS = "--ignore-opt-outs"
"""The option with which no opt-out holds a drain."""


class OptOut(Facts, frozen=True):
    """One annotation or label that holds; ``why`` names it and the tool."""

    mark: str
    why: str


def pod_opt_outs(pod: Pod) -> Iterator[OptOut]:
    """What holds the pod, in a fixed order."""
    if pod.is_finished or pod.metadata.deletion_timestamp is not None:
        return
    marks = pod.metadata.annotations or {}
    if marks.get(KARPENTER_DO_NOT_DISRUPT) == "true":
        yield _opt_out("annotation", KARPENTER_DO_NOT_DISRUPT, "true", "keeps Karpenter from disrupting the pod")
    if marks.get(SAFE_TO_EVICT) == "false":
        yield _opt_out("annotation", SAFE_TO_EVICT, "false", "keeps cluster-autoscaler from evicting the pod")
    if PREFER_NO_EVICTION in marks:
        value = marks[PREFER_NO_EVICTION]
        yield _opt_out("annotation", PREFER_NO_EVICTION, value, "keeps the descheduler from evicting the pod")
    label = (pod.metadata.labels or {}).get(CLUSTER_API_DRAIN, "")
    if waits_for_completion(label):
        yield _opt_out("label", CLUSTER_API_DRAIN, label, "has a drain by Cluster API wait until the pod has completed")


def node_opt_outs(node: DrainNode) -> Iterator[OptOut]:
    """What holds all pods of the node."""
    if (node.metadata.annotations or {}).get(KARPENTER_DO_NOT_DISRUPT) == "true":
        yield _opt_out("annotation", KARPENTER_DO_NOT_DISRUPT, "true", "keeps Karpenter from disrupting the node")


def waits_for_completion(label: str) -> bool:
    """Whether a value of Cluster API's label is ``wait-completed``, as Cluster API compares it (drainLabelFilter)."""
    return label.replace("-", "", 1).lower() == "waitcompleted"


def _opt_out(kind: str, mark: str, value: str, effect: str) -> OptOut:
    text = f"{mark}: {value}" if value else mark
    return OptOut(mark=mark, why=f"{kind} {text} {effect}")
