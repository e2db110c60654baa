"""A guarded Redis with Sentinels in the lab: real servers, the real kubectl, a client that counts its acknowledged writes."""

import shutil
import time

import pytest
from support.guard.guarded_lab import wait
from support.guard.guarded_sentinel import NAME, GuardedSentinel

pytestmark = [
    pytest.mark.timeout(270),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]


@pytest.fixture
def redis(tmp_path):
    made = GuardedSentinel(tmp_path, guarded=True)
    yield made.start()
    made.end()


def test_a_roll_of_all_members_loses_nothing_and_frozen_replicas_hold_the_master(redis):
    before = {name: pod["metadata"]["uid"] for name, pod in redis.pods().items()}
    with redis.client() as client:
        time.sleep(1)
        redis(f"rollout restart statefulset {NAME}")
        said = redis(f"rollout status statefulset {NAME} --timeout=150s")
        wait(redis.is_whole, "all members")
        time.sleep(1)
    assert "complete" in said or "successfully" in said, (said, redis.held())
    assert all(pod["metadata"]["uid"] != before[name] for name, pod in redis.pods().items())
    assert len(client.acknowledged) > 100
    assert client.count_lost() == 0
    wait(lambda: not redis.held(), "release of what was prepared")
    master = redis.leading_pod()
    redis.freeze(redis.replica_pods()[0])
    redis(f"delete pod {master} --wait=false")
    wait(lambda: redis.held().get(master, {}).get("state") in ("Unhealthy", "Stalled"), "word that it is held")
    assert redis.leading_pod() == master
