"""When the writes of pods begin that Services send traffic, and of pods that get none."""

import asyncio

import pytest
from support.agents.face_cluster import in_cluster
from support.kube.api_servers import Wire

from lastcall.adapters.kube.client import Client
from lastcall.graceful.cluster.cluster_node_face import AFTER_SIGTERM_SECONDS, SIGTERM_SECONDS, SIGTERMS_SECONDS
from lastcall.graceful.cluster.traffic_wait import ANSWER_SECONDS


def first_deletion(cluster, name):
    return next(at for at, method, path in cluster.asked if method == "DELETE" and path.endswith(f"/{name}"))


async def begin_pods(cluster, count):
    """All at once, as a phase does; the first one is ``web-0``."""
    lives = [await cluster.make_pod(f"web-{number}", labels={"app": "web"}) for number in range(count)]
    cluster.face.expect_pods({"default"})
    return [asyncio.ensure_future(cluster.face.begin_pod(live, 30.0, 2.0)) for live in lives], lives


@pytest.mark.parametrize(
    ("count", "after"),
    [(1, AFTER_SIGTERM_SECONDS), (20, 20 * SIGTERM_SECONDS), (100, SIGTERMS_SECONDS)],
)
def test_writes_of_pods_without_traffic_leave_the_cpu_to_the_sigterms_of_the_phase(count, after):
    @in_cluster
    async def scene(cluster):
        beginning, _ = await begin_pods(cluster, count)
        await asyncio.gather(*beginning)
        assert cluster.clock.boottime() < 0.01, "their SIGTERMs wait for nothing"
        await cluster.clock.sleep(1)
        assert first_deletion(cluster, "web-0") == pytest.approx(after, abs=0.001)

    scene()


@in_cluster
async def test_pods_that_have_ended_count_no_more(cluster):
    beginning, lives = await begin_pods(cluster, 20)
    await asyncio.gather(*beginning)
    for live in lives:
        await cluster.face.report_pod_ended(live, {})
    late = await cluster.make_pod("late", labels={"app": "web"})
    begun = cluster.clock.boottime()
    await cluster.face.begin_pod(late, 30.0, begun + 2)
    await cluster.clock.sleep(1)
    assert first_deletion(cluster, "late") == pytest.approx(begun + AFTER_SIGTERM_SECONDS, abs=0.001)


@in_cluster
async def test_a_pod_that_has_ended_is_deleted_at_once(cluster):
    """Nothing is left to wait for, and the machine waits for its last write."""
    beginning, lives = await begin_pods(cluster, 20)
    await asyncio.gather(*beginning)
    begun = cluster.clock.boottime()
    await cluster.clock.sleep(3 * AFTER_SIGTERM_SECONDS)
    await cluster.face.report_pod_ended(lives[7], {})
    await cluster.clock.sleep(1)
    assert first_deletion(cluster, "web-7") == pytest.approx(begun + 3 * AFTER_SIGTERM_SECONDS, abs=0.001)
    assert first_deletion(cluster, "web-8") == pytest.approx(begun + 20 * SIGTERM_SECONDS, abs=0.001)


@in_cluster
async def test_a_pod_with_traffic_is_deleted_as_soon_as_that_is_known(cluster):
    """Its SIGTERM waits for what the deletion brings about."""
    live = await cluster.make_pod("web", labels={"app": "web"})
    await cluster.make_slice(live)
    cluster.face.expect_pods({"default"})
    others, _ = await begin_pods(cluster, 20)
    await cluster.face.begin_pod(live, 30.0, 2.0)
    await asyncio.gather(*others)
    assert first_deletion(cluster, "web") < AFTER_SIGTERM_SECONDS


@in_cluster
async def test_a_pod_whose_traffic_is_not_known_in_time_is_deleted_then(cluster):
    live = await cluster.make_pod("web", labels={"app": "web"})
    cluster.slow, cluster.reader = 1.0, Client(Wire(cluster))
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, 2.0)
    assert cluster.clock.boottime() == pytest.approx(ANSWER_SECONDS)
    await cluster.clock.sleep(0.01)
    assert first_deletion(cluster, "web") == pytest.approx(ANSWER_SECONDS)


@in_cluster
async def test_a_cancel_while_the_slices_are_read_leaves_the_pod_alone(cluster):
    live = await cluster.make_pod("web", labels={"app": "web"})
    cluster.slow, cluster.reader = 0.1, Client(Wire(cluster))
    cluster.face.expect_pods({"default"})
    beginning = asyncio.ensure_future(cluster.face.begin_pod(live, 30.0, 2.0))
    await cluster.clock.sleep(0.05)
    await cluster.face.mark_ready()
    assert await beginning is True
    await cluster.clock.sleep(5)
    assert not [path for _, method, path in cluster.asked if method == "DELETE"]
