"""What holds a drain by the node itself, by a mark on the pod, or by the pod's finalizers (pure)."""

from collections.abc import Iterator

from lastcall.drain.planning.drain_case import DrainCase, DrainHolder, DrainObstacle
from lastcall.drain.planning.opt_outs import IGNORE_OPT_OUTS, node_opt_outs, pod_opt_outs
from lastcall.model.drain_facts import OUT_OF_REACH, DrainNode, DrainPod, PodName, pod_name
from lastcall.names import OUT_OF_SERVICE

KUBERNETES_FINALIZERS = ("batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan")
"""Finalizers that the Job controller and the garbage collector remove themselves."""


def find_opt_out_obstacles(case: DrainCase) -> Iterator[DrainObstacle]:
    """One obstacle for each node and each pod that another tool is to leave alone."""
    if case.settings.ignore_opt_outs:
        return
    for node in case.nodes:
        if found := list(node_opt_outs(node)):
            why = "; ".join(one.why for one in found)
            yield DrainObstacle(by=_node(node), pods=_pods_on(node, case), why=why, mend=IGNORE_OPT_OUTS)
    for pod in case.evicted:
        if found := list(pod_opt_outs(pod)):
            why = "; ".join(one.why for one in found)
            yield DrainObstacle(by=_pod(pod), pods=(pod_name(pod),), why=why, mend=IGNORE_OPT_OUTS)


def find_gone_nodes(case: DrainCase) -> Iterator[DrainObstacle]:
    """One obstacle for each node whose kubelet would not end the pods that are to go."""
    for node in case.nodes:
        why = describe_absence(node)
        if why and (pods := _pods_on(node, case)):
            yield DrainObstacle(
                by=_node(node),
                pods=pods,
                why=f"{why}: nothing confirms the end of its pods",
                mend=f"hand the node over to failover: lastcall failover explain node/{node.name}",
            )


def find_finalizers(case: DrainCase) -> Iterator[DrainObstacle]:
    """One obstacle for each pod whose object stays until somebody removes its finalizers."""
    for pod in case.evicted:
        names = [name for name in pod.metadata.finalizers or () if name not in KUBERNETES_FINALIZERS]
        if not names:
            continue
        namespace, name = pod_name(pod)
        said = ", ".join(names)
        yield DrainObstacle(
            by=_pod(pod),
            pods=(pod_name(pod),),
            why=f"the pod's object stays until its finalizers are removed: {said}",
            mend=f"have the controller of {said} remove it, or, if that is gone: kubectl edit pod {name} -n {namespace}",
        )


def describe_absence(node: DrainNode) -> str:
    """Why the node counts as gone; "" if it does not. A node that says nothing of itself is there."""
    taint = node.find_taint(OUT_OF_SERVICE, *OUT_OF_REACH)
    if taint:
        return f"node {node.name} has the taint {taint.key}"
    if node.readiness not in ("", "True"):
        return f"node {node.name} is not Ready (its condition Ready is {node.readiness})"
    return ""


def _pods_on(node: DrainNode, case: DrainCase) -> tuple[PodName, ...]:
    """The pods of the node that are to go and have not finished."""
    return tuple(pod_name(pod) for pod in case.evicted if pod.spec.node_name == node.name and not pod.is_finished)


def _node(node: DrainNode) -> DrainHolder:
    return DrainHolder(kind="Node", namespace="", name=node.name)


def _pod(pod: DrainPod) -> DrainHolder:
    namespace, name = pod_name(pod)
    return DrainHolder(kind="Pod", namespace=namespace, name=name)
