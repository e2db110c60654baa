"""Readiness gates by which a controller of load balancers says that a pod is a healthy target (pure).

The condition is about a pod that comes. None of these controllers says by it that a pod that leaves gets no more requests.
"""

from typing import Final

from lastcall.model.drain_facts import DrainPod

_GATES: Final = (
    "target-health.elbv2.k8s.aws/",
    "target-health.alb.ingress.k8s.aws/",
    "cloud.google.com/load-balancer-neg-ready",
)
"""AWS Load Balancer Controller 2 and 1, whose gates end with the name of a binding; GKE's network endpoint groups."""


def list_balancer_gates(pod: DrainPod) -> tuple[str, ...]:
    """The condition types of the pod's gates that load balancers set."""
    gates = pod.spec.readiness_gates or ()
    return tuple(one.condition_type for one in gates if one.condition_type.startswith(_GATES))
