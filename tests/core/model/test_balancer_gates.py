"""Which readiness gates are those of load balancers."""

import msgspec
import pytest

from lastcall.model.balancer_gates import list_balancer_gates
from lastcall.model.drain_facts import DrainPod


@pytest.mark.parametrize(
    ("gate", "counts"),
    [
        ("target-health.elbv2.k8s.aws/k8s-shop-web-3f1b", True),
        ("target-health.alb.ingress.k8s.aws/web_web_80", True),
        ("cloud.google.com/load-balancer-neg-ready", True),
        ("acme.io/warm", False),
        ("x.target-health.elbv2.k8s.aws/web", False),
    ],
)
def test_gates(gate, counts):
    spec = {"readinessGates": [{"conditionType": "acme.io/ready"}, {"conditionType": gate}]}
    pod = msgspec.convert({"metadata": {"name": "a"}, "spec": spec}, DrainPod)
    assert list_balancer_gates(pod) == ((gate,) if counts else ())
    assert list_balancer_gates(msgspec.convert({"metadata": {"name": "a"}, "spec": {}}, DrainPod)) == ()
