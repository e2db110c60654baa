"""No review is lost while the guard's replicas are replaced: reviews over kept connections, through a node's proxy.

The real guard in pods of the lab, and its Deployment's roll. The proxy forwards TCP and follows the EndpointSlices late, as
kube-proxy does. ``make bench ARGS=guard`` does the same with 500 reviews a second.
"""

import pytest
from support.guard.guard_pods import GuardPods, ReviewLoad

pytestmark = pytest.mark.timeout(270)


@pytest.fixture
def guards(tmp_path):
    made = GuardPods(tmp_path, "--propagation-delay=1s", drain_seconds=6)
    try:
        yield made.start()
    finally:
        made.end()


def test_no_review_is_lost_while_replicas_roll(guards):
    with ReviewLoad(guards.reach(), rate=40) as load:
        guards.roll()
    found = load.figures
    assert (found["broken"], found["refused"], found["lost"], found["wrong"]) == (0, 0, 0, 0), found
    assert found["opened"] >= 2 * 16, "all connections were replaced, with each replica"
    assert found["answered"] > 100
