"""How long SIGTERM waits after a pod has left its EndpointSlices, in virtual time."""

import asyncio

import pytest
from support.agents.face_cluster import in_cluster

from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.graceful.cluster.settle_time import DEFAULT_SECONDS


async def wait_for_one_pod(cluster, limit=60.0):
    """The seconds that the pod waits; it leaves its slice after 0.4 s."""
    cluster.face = cluster.new_face()
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)
    cluster.face.expect_pods({"default"})
    begun = cluster.clock.boottime()
    withdrawal = asyncio.create_task(cluster.withdraw(0.4))
    await cluster.face.begin_pod(live, 60.0, begun + limit)
    await cancel_and_wait(withdrawal)
    return cluster.clock.boottime() - begun


@pytest.mark.parametrize(
    ("configured", "latency", "settles"),
    [
        (0.1, 1.0, 0.1),
        (0.0, 1.0, 0.0),
        (None, 1.0, 1.0),
        (None, 0.25, 0.25),
        (None, None, DEFAULT_SECONDS),
        (None, Unavailable("connection refused"), DEFAULT_SECONDS),
    ],
)
def test_the_configured_time_counts_then_the_learnt_one(configured, latency, settles):
    @in_cluster
    async def scene(cluster):
        cluster.settle, cluster.proxies.latency = configured, latency
        assert await wait_for_one_pod(cluster) == pytest.approx(0.4 + settles, abs=0.05)
        assert cluster.withdrawals == [pytest.approx(0.4, abs=0.05)]

    scene()


@in_cluster
async def test_the_proxies_are_asked_once_and_only_for_a_pod_that_gets_traffic(cluster):
    cluster.settle = None
    cluster.face = cluster.new_face()
    web, twin, batch = [await cluster.make_pod(name) for name in ("web", "twin", "batch")]
    await cluster.make_slice(web, twin)
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(batch, 60.0, 10.0)
    await cluster.clock.sleep(0.1)
    assert cluster.proxies.asked == 0
    for live in (web, twin):
        await cluster.face.begin_pod(live, 60.0, 0.2)
    assert cluster.proxies.asked == 1


@in_cluster
async def test_a_learnt_time_never_exceeds_the_limit(cluster):
    cluster.settle, cluster.proxies.latency = None, 300.0
    assert await wait_for_one_pod(cluster) == pytest.approx(2.0, abs=0.05)


@in_cluster
async def test_a_proxy_that_never_answers_holds_up_nothing(cluster):
    cluster.settle, cluster.proxies.read_latency = None, asyncio.Event().wait
    assert await wait_for_one_pod(cluster) == pytest.approx(0.4 + DEFAULT_SECONDS, abs=0.05)


@in_cluster
async def test_a_wait_that_was_cut_short_is_not_observed(cluster):
    cluster.settle = 0.1
    assert await wait_for_one_pod(cluster, limit=0.2) == pytest.approx(0.2, abs=0.05)
    assert cluster.withdrawals == []
