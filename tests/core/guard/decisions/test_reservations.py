"""One application gives up so many members at a time."""

import pytest
from support.guard.reviews import (
    BOTH,
    answer,
    deletion,
    eviction,
    held,
    obj,
    outcome,
    pod,
    policy,
    ready,
    state,
)


@BOTH
@pytest.mark.parametrize("name", ["Preparing", "Ready", "Stalled"])
def test_another_pod_of_the_application_waits_and_the_one_in_front_is_named(ask, name):
    other = held(name, "db-1")
    response = answer(ask(), state(policy(other)))["response"]
    assert not response["allowed"]
    assert f"pod db-1 of the same application is in front ({name})" in response["status"]["message"]


@BOTH
@pytest.mark.parametrize("name", ["Released", "Unhealthy"])
def test_a_pod_without_a_place_blocks_no_other(ask, name):
    assert outcome(ask(), state(policy(held(name, "db-1"), ready()))) == (True, "ready")


@pytest.mark.parametrize(("first", "allowed"), [("db-0", ["db-0"]), ("db-1", ["db-1"])])
def test_of_two_that_are_ready_the_one_that_was_asked_for_first_goes(first, allowed):
    entries = [ready(f"db-{number}", since=-90 if f"db-{number}" == first else -60) for number in range(2)]
    cluster = state(policy(*entries))
    assert [name for name in ("db-0", "db-1") if outcome(eviction(name), cluster)[0]] == allowed


def test_of_two_asked_for_in_the_same_second_exactly_one_goes():
    cluster = state(policy(ready("db-0"), ready("db-1")))
    assert sum(outcome(deletion(pod(name)), cluster)[0] for name in ("db-0", "db-1")) == 1


@pytest.mark.parametrize(
    ("most", "allowed"), [(1, 1), (2, 2), (3, 3), ("1%", 1), ("34%", 2), ("66%", 2), ("67%", 3), ("100%", 3)]
)
def test_as_many_as_the_policy_says_go_at_a_time(most, allowed):
    cluster = state(policy(*(ready(f"db-{number}") for number in range(3)), maxUnavailable=most))
    assert sum(outcome(eviction(f"db-{number}"), cluster)[0] for number in range(3)) == allowed


def test_a_pod_that_is_gone_keeps_its_place_until_it_is_released():
    gone = held("Ready", "db-7", uid="uid-gone", since=-30)
    assert outcome(deletion(), state(policy(gone, ready()))) == (False, "waiting")
    assert outcome(deletion(), state(policy(gone | {"state": "Released"}, ready()))) == (True, "ready")


def test_a_pod_that_is_gone_keeps_its_place_when_its_successor_has_its_name():
    gone = held("Ready", "db-1", uid="uid-before", since=-30)
    assert outcome(deletion(), state(policy(gone, ready()))) == (False, "waiting")


def test_two_applications_of_one_policy_do_not_wait_for_each_other():
    other = obj("StatefulSet", "cache", version="apps/v1", namespace="shop", spec={"replicas": 1})
    other["metadata"]["uid"] = "uid-cache"
    owned = [{"kind": "StatefulSet", "name": "cache", "uid": "uid-cache", "controller": True}]
    cluster = state(other, pod("cache-0", owner="", ownerReferences=owned), policy(ready(since=-90), ready("cache-0")))
    assert outcome(eviction("cache-0"), cluster) == (True, "ready")


def test_a_label_says_what_one_application_is():
    labelled = [pod(f"db-{number}", labels={"app": "db", "shard": shard}) for number, shard in enumerate("aab")]
    entries = [ready(f"db-{number}", since=-90 + number) for number in range(3)]
    cluster = state(*labelled, policy(*entries, groupBy="shard"))
    assert [outcome(eviction(f"db-{number}"), cluster)[0] for number in range(3)] == [True, False, True]
