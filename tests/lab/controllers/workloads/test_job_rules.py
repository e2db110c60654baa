"""What the lab's Jobs are made of: indexes, policies and pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall_lab.controllers.workloads import job_indexes
from lastcall_lab.controllers.workloads.job_failures import JobBackoff, PodFailureVerdict, judge_failure, wait_after

DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0,1"), ([0, 1, 2], "0-2"), ([7, 0, 1, 2, 5, 6], "0-2,5-7"), ([1, 3, 4], "1,3,4")],
)
def test_indexes_as_text(numbers, text):
    assert job_indexes.format_indexes(set(numbers)) == text
    assert job_indexes.parse_indexes(text, 10) == set(numbers)


@given(st.sets(st.integers(0, 60)))
def test_indexes_as_text_and_back(numbers):
    assert job_indexes.parse_indexes(job_indexes.format_indexes(numbers), 61) == numbers


def test_indexes_beyond_the_last_are_passed_over():
    assert job_indexes.parse_indexes("2-9,x,12", 5) == {2, 3, 4}


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededIndexes": "0-2"}, {0, 1, 2}, True),
        ({"succeededIndexes": "0-2"}, {0, 1, 3}, False),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, {0, 1, 3}, True),
        ({"succeededCount": 2}, {4, 5}, True),
        ({"succeededCount": 3}, {4, 5}, False),
    ],
)
def test_success_policy(rule, succeeded, met):
    assert bool(job_indexes.success_policy_reason({"rules": [rule]}, 6, succeeded)) is met


def pod(code=1, container="c", **conditions):
    ended = [{"name": container, "state": {"terminated": {"exitCode": code}}}]
    said = [{"type": name, "status": value} for name, value in conditions.items()]
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "status": {"containerStatuses": ended, "conditions": said},
    }


@pytest.mark.parametrize(
    ("rules", "failed", "expected"),
    [
        ([], pod(), PodFailureVerdict()),
        ([{"action": "Ignore", **DISRUPTED}], pod(DisruptionTarget="True"), PodFailureVerdict(counts=False)),
        ([{"action": "Ignore", **DISRUPTED}], pod(DisruptionTarget="False"), PodFailureVerdict()),
        (
            [{"action": "Count", **DISRUPTED}, {"action": "Ignore", **DISRUPTED}],
            pod(DisruptionTarget="True"),
            PodFailureVerdict(),
        ),
        (
            [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}],
            pod(1),
            PodFailureVerdict(counts=False),
        ),
        ([{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}], pod(1), PodFailureVerdict()),
        ([{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}], pod(0), PodFailureVerdict()),
        (
            [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1], "containerName": "other"}}],
            pod(1),
            PodFailureVerdict(),
        ),
        (
            [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [2]}}],
            pod(1),
            PodFailureVerdict(fails_index=True),
        ),
        (
            [{"action": "FailJob", **DISRUPTED}],
            pod(DisruptionTarget="True"),
            PodFailureVerdict(
                fails_job="Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"
            ),
        ),
    ],
)
def test_failure_policy(rules, failed, expected):
    assert judge_failure({"rules": rules}, failed) == expected


@pytest.mark.parametrize(
    ("ended", "left"),
    [
        ([], 0),
        ([([100], [])], 0),
        ([([], [100])], 10),
        ([([], [90, 95])], 15),
        ([([], [90]), ([], [95])], 15),
        ([([], [90]), ([95], [])], 0),
        ([([95], [90])], 0),
        ([([], [90]), ([95], [98])], 8),
        ([([], [86500]), ([95], [])], 0),
        ([([], [86500])], 86410),
        ([([], [100])] * 30, 600),
    ],
)
def test_waits(ended, left):
    """What is heard of together: the times of successes, and of failures. A clock that is ahead makes it wait for long."""
    backoff = JobBackoff()
    for succeeded, failed in ended:
        backoff = backoff.with_ended_pods(succeeded, failed)
    assert wait_after(*backoff, 100.0, first=10.0, longest=600.0) == left
