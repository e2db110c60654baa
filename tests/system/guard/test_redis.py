"""A guarded Redis in the lab: real servers, the real kubectl, a client that counts its acknowledged writes.

The same is done without the guard, in states in which that matters: a proof on a healthy Redis would prove nothing.
"""

import shutil
import time

import pytest
from support.guard import application_states as states
from support.guard import redis_set
from support.guard.guarded_lab import wait
from support.guard.guarded_redis import GuardedRedis

pytestmark = [
    pytest.mark.timeout(270),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]


@pytest.fixture
def redis(tmp_path):
    made = []

    def make(*, guarded=True, **how):
        made.append(GuardedRedis(tmp_path, guarded=guarded))
        return made[-1].start(**how)

    yield make
    for one in made:
        one.end()


def test_the_master_hands_over_before_it_goes_and_nothing_is_lost(redis):
    cluster = redis()
    master = cluster.leading_pod()
    with redis_set.RedisWriter(cluster.peers) as client:
        time.sleep(1)
        said = cluster.delete_until_gone(master)
        wait(cluster.is_whole, "all members")
        time.sleep(1)
    assert "denied the request: pod default/" in said[0]
    assert "its application begins to prepare" in said[0]
    assert said[-1].startswith(f'pod "{master}" deleted')
    assert cluster.leading_pod() != master
    assert len(client.acknowledged) > 100
    assert client.count_lost() == 0
    reasons = cluster("get events -o jsonpath={.items[*].reason}")
    assert "PreparingForDeletion" in reasons
    assert "ReadyForDeletion" in reasons


def lose_the_master(cluster):
    """Its replicas are frozen; it is deleted; they thaw after it has gone, or has been held for a while."""
    master = cluster.leading_pod()
    with redis_set.RedisWriter(cluster.peers, size=50_000) as client:
        time.sleep(1)
        cluster.freeze(*(name for name in cluster.pods() if name != master))
        time.sleep(3)
        said = [cluster(f"delete pod {master} --wait=false")]
        time.sleep(6)
        said.append(cluster(f"delete pod {master} --wait=false"))
        held = cluster.held() if cluster.guarded else {}
        cluster.thaw()
        time.sleep(2)
        if cluster.guarded:
            cluster.delete_until_gone(master)
        wait(cluster.is_whole, "all members")
        time.sleep(1)
    return client, said, held.get(master)


def test_while_its_replicas_are_frozen_the_master_is_held_and_a_person_is_told(redis):
    client, said, held = lose_the_master(redis(grace=2))
    assert "TooManyRequests" in said[1]
    assert held["state"] in ("Unhealthy", "Stalled")
    assert "no answer" in held["message"] or "behind" in held["message"]
    assert client.count_lost() == 0


def test_without_a_guard_frozen_replicas_cost_writes(redis):
    client, said, _ = lose_the_master(redis(guarded=False, grace=2))
    assert "deleted" in said[0]
    assert client.count_lost() > 0


def test_two_members_that_are_asked_for_at_once_never_go_together(redis):
    cluster = redis()
    uids = {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items()}
    with redis_set.RedisWriter(cluster.peers) as client:
        for _ in range(6):
            cluster("delete pod redis-0 redis-1 --wait=false")
            gone = [name for name, pod in cluster.pods().items() if "deletionTimestamp" in pod["metadata"]]
            assert len(gone) <= 1
            time.sleep(1)
        wait(cluster.is_whole, "all members")
    changed = [name for name, pod in cluster.pods().items() if pod["metadata"]["uid"] != uids[name]]
    assert changed
    assert client.count_lost() == 0


def test_one_member_short_nothing_is_begun(redis):
    """Two of three: with another one away nobody would be left to take over."""
    cluster = redis()
    master = cluster.leading_pod()
    replica = next(name for name in cluster.pods() if name != master)
    cluster.freeze(replica)
    time.sleep(3)
    cluster(f"delete pod {master} --wait=false")
    wait(lambda: cluster.held()[master]["state"] == "Unhealthy", "word that it is unhealthy")
    assert replica in cluster.held()[master]["message"]
    assert cluster.leading_pod() == master
    assert "ApplicationUnhealthy" in cluster("get events -o jsonpath={.items[*].reason}")
    assert "short of members already" in cluster(f"delete pod {master} --wait=false")


def test_a_drain_goes_on_when_the_member_is_ready(redis):
    cluster = redis()
    master = cluster.leading_pod()
    node = cluster.pods()[master]["spec"]["nodeName"]
    with redis_set.RedisWriter(cluster.peers) as client:
        said = cluster(f"drain {node} --ignore-daemonsets --delete-emptydir-data --timeout=120s")
        cluster(f"uncordon {node}")
        wait(cluster.is_whole, "all members")
    assert "will retry after 5s" in said
    assert f"node/{node} drained" in said
    assert client.count_lost() == 0


def test_a_roll_of_the_stateful_set_needs_nobody(redis):
    """The controller's refused deletions are carried out when the members are ready, not after its backoff."""
    cluster = redis()
    with redis_set.RedisWriter(cluster.peers) as client:
        cluster("rollout restart statefulset redis")
        said = cluster("rollout status statefulset redis --timeout=180s")
        wait(cluster.is_whole, "all members")
    assert "roll" in said
    assert "complete" in said or "successfully" in said
    assert client.count_lost() == 0


@pytest.mark.parametrize(
    ("play", "said"),
    [
        pytest.param(states.ask_while_replicas_are_frozen, ("no answer", "behind"), id="b-frozen"),
        pytest.param(states.ask_one_member_short, ("redis-0", "redis-1"), id="c-short"),
    ],
)
def test_a_roll_is_held_in_trouble_a_person_is_told_and_it_goes_on_by_itself(redis, play, said):
    """The master is the first that the controller asks for. Events, a condition and the policy say why it waits."""
    cluster = redis()
    found = states.observe(cluster, lambda one: play(one, way=states.RolloutRestart), size=50_000)
    held, condition = found.asked.held, found.asked.condition
    assert held["state"] in ("Unhealthy", "Stalled")
    assert held["requestedBy"] == "system:serviceaccount:kube-system:statefulset-controller"
    assert any(one in held["message"] for one in said)
    assert (condition["status"], condition["reason"]) == ("False", held["state"])
    assert any(one in condition["message"] for one in said)
    told = cluster.told_about("ApplicationUnhealthy") | cluster.told_about("PreparationStalled")
    assert told >= {("Pod", "redis-2"), ("StatefulSet", "redis")}
    assert found.lost == 0


def test_without_a_guard_a_roll_costs_writes_while_replicas_are_frozen(redis):
    cluster = redis(guarded=False)
    play = lambda one: states.ask_while_replicas_are_frozen(one, way=states.RolloutRestart)  # noqa: E731 - as above
    assert states.observe(cluster, play, size=50_000).lost > 0
