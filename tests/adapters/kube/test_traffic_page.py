"""What the agent observes of its kube-proxy while its page is read."""

import pytest
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.traffic_page import TrafficPage
from lastcall.errors import Unavailable
from lastcall.model.node_traffic import PodConnections
from lastcall.model.proxy_sync import ProxySync


class Proxy:
    """In place of kube-proxy's metrics: one answer after the other."""

    def __init__(self, *answers):
        self._answers = iter(answers)

    async def read_sync(self):
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer, None


def sync(queued, finished, pending=0):
    return ProxySync(queued, finished, 0.1, pending)


OLD = sync(50, 51)


@pytest.mark.parametrize(
    ("answers", "observed"),
    [
        ([OLD, OLD], []),
        ([OLD, sync(60, 62)], [2]),
        ([OLD, sync(60, 51, 1), sync(60, 51), sync(60, 64)], [4]),
        ([OLD, sync(60, 62), sync(60, 90)], [2]),  # a synchronization without a change
        ([sync(60, 51, 1), sync(60, 63)], [3]),
        ([OLD, sync(60, 62), sync(70, 71)], [2, 1]),
        ([OLD, Unavailable("no"), sync(60, 62)], [2]),
        ([Unavailable("no"), OLD], []),
        ([None, OLD], []),
    ],
)
async def test_each_change_is_observed_once(answers, observed):
    seen = []
    page = TrafficPage(Proxy(*answers), lambda: PodConnections({}, True), Hand(100.0), observe=seen.append)
    for _ in answers:
        await page.render_text()
    assert seen == observed
