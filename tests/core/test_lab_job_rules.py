"""What the lab's Jobs are made of: indexes, policies and pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.lab.controllers import job_indexes
from lastcall.lab.controllers.job_failures import Backoff, Judgement, judge, wait_after

DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0,1"), ([0, 1, 2], "0-2"), ([7, 0, 1, 2, 5, 6], "0-2,5-7"), ([1, 3, 4], "1,3,4")],
)
def test_indexes_as_text(numbers, text):
    assert job_indexes.text(set(numbers)) == text
    assert job_indexes.parse(text, 10) == set(numbers)


@given(st.sets(st.integers(0, 60)))
def test_indexes_as_text_and_back(numbers):
    assert job_indexes.parse(job_indexes.text(numbers), 61) == numbers


def test_indexes_beyond_the_last_are_passed_over():
    assert job_indexes.parse("2-9,x,12", 5) == {2, 3, 4}


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
    assert bool(job_indexes.succeeds({"rules": [rule]}, 6, succeeded)) is met


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
        ([], pod(), Judgement()),
        ([{"action": "Ignore", **DISRUPTED}], pod(DisruptionTarget="True"), Judgement(counts=False)),
        ([{"action": "Ignore", **DISRUPTED}], pod(DisruptionTarget="False"), Judgement()),
        (
            [{"action": "Count", **DISRUPTED}, {"action": "Ignore", **DISRUPTED}],
            pod(DisruptionTarget="True"),
            Judgement(),
        ),
        ([{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}], pod(1), Judgement(counts=False)),
        ([{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}], pod(1), Judgement()),
        ([{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}}], pod(0), Judgement()),
        (
            [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1], "containerName": "other"}}],
            pod(1),
            Judgement(),
        ),
        (
            [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [2]}}],
            pod(1),
            Judgement(fails_index=True),
        ),
        (
            [{"action": "FailJob", **DISRUPTED}],
            pod(DisruptionTarget="True"),
            Judgement(fails_job="Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"),
        ),
    ],
)
def test_failure_policy(rules, failed, expected):
    assert judge({"rules": rules}, failed) == expected


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
    backoff = Backoff()
    for succeeded, failed in ended:
        backoff = backoff.after(succeeded, failed)
    assert wait_after(*backoff, 100.0, first=10.0, longest=600.0) == left
