"""A node's word on its going down that cannot be read: it puts fencing off for a while, not for ever."""

import json

import pytest
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.transport import ApiResponse
from lastcall.failover.evidence.read_failures import ReadFailures, add_failure
from lastcall_lab.apiserver.server.in_process import InProcessTransport

BROKEN = {
    "kind": "Status",
    "status": "Failure",
    "code": 500,
    "message": "Internal error occurred: it cannot be decoded",
}
ODD = {"metadata": {"name": "n"}, "status": {"outcome": 7}}


def after(*moments):
    unread = None
    for now in moments:
        unread = add_failure(unread, now)
    return unread


@pytest.mark.parametrize(
    ("moments", "since"),
    [((100,), 100), ((100, 280), 100), ((100, 281), 281), ((*range(100, 701, 75),), 100), ((100, 700), 700)],
)
def test_failures_that_follow_each_other_are_one_row(moments, since):
    assert after(*moments) == ReadFailures(since, moments[-1])


@pytest.mark.parametrize(
    ("unread", "now", "given_up"),
    [
        (ReadFailures(100, 699), 699, False),
        (ReadFailures(100, 700), 700, True),
        (ReadFailures(100, 710), 1309, True),
        (ReadFailures(100, 710), 1310, False),
    ],
)
def test_after_ten_minutes_it_is_taken_for_none_for_as_long(unread, now, given_up):
    assert unread.is_given_up(now) is given_up


@pytest.mark.parametrize(("code", "body"), [(500, BROKEN), (200, ODD)])
def test_a_word_that_cannot_be_read_puts_fencing_off_for_ten_minutes(monkeypatch, code, body):
    real, asked = InProcessTransport.request, []

    async def request(self, method, target, headers, given, *, stream=False):
        if method == "GET" and "/nodeshutdowns/n" in target:
            asked.append(target)
            return ApiResponse(code, {}, json.dumps(body).encode())
        return await real(self, method, target, headers, given, stream=stream)

    @failing_over
    async def scenario(world):
        world.start()
        node = world.place()
        await world.cluster.settle(30)
        monkeypatch.setattr(InProcessTransport, "request", request)
        world.nodes.pull(node)
        await world.until(lambda: asked, 60)
        began = world.now
        await world.until(lambda: world.verbs("off"), 900)
        assert world.now - began >= 600
        await world.until(lambda: world.place() not in (None, node), 60)

    scenario()
