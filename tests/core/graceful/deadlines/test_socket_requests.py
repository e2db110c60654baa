"""A script's requests: what is understood, what is refused, what is answered."""

import json

import pytest

from lastcall.errors import InvalidInput
from lastcall.graceful.deadlines.socket_requests import AgentOutlook, parse_request, plan_answer, requested_notice

WALL = 1_764_244_800.0  # 2025-11-27T12:00:00Z
OUTLOOK = AgentOutlook(state="ARMED", requested=30.0, lead=900.0, observes=False)


def notice(**request):
    return requested_notice(parse_request(json.dumps(request).encode()), now=50.0, wall=WALL)


def test_a_time_from_now_or_a_time_of_day():
    assert notice(seconds=90).deadline == 140.0
    assert notice(seconds=0.5).deadline == 50.5
    assert notice(deadline="2025-11-27T12:01:00Z").deadline == 110.0
    assert notice(deadline="2025-11-27T13:01:00+01:00", reason="kernel").reason == "kernel"
    assert notice(seconds=1).reason == "no reason is given"
    assert notice() is None
    assert notice(cancel=True) is None


def test_a_reason_is_one_line_of_bounded_length():
    reason = notice(seconds=1, reason="a\nb\x1b[31m" + "x" * 500).reason
    assert len(reason) <= 200
    assert "\n" not in reason
    assert "\x1b" not in reason


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "request: must be a mapping of seconds, deadline, reason, cancel"),
        (b"{", "request: is not JSON: "),
        (b"[1]", "request: must be a mapping of "),
        (b'{"second": 5}', "request: second: unknown field, known are "),
        (b'{"seconds": "5"}', 'request: seconds: "5": must be a number'),
        (b'{"seconds": -1}', "request: seconds: -1: must be a number >= 0"),
        (b'{"seconds": 1e9}', "request: seconds: "),
        (b'{"seconds": 1, "cancel": true}', "request: seconds, deadline, cancel: only one of them may be given"),
        (
            b'{"deadline": "2025-11-27T12:01:00"}',
            'request: deadline: "2025-11-27T12:01:00": must be an RFC 3339 time with its zone',
        ),
        (b'{"deadline": "2025-11-27T11:59:59Z"}', "request: deadline: "),
        (b'{"deadline": "2099-01-01T00:00:00Z"}', "request: deadline: "),
    ],
)
def test_what_is_wrong_is_told_with_field_value_and_rule(line, said):
    with pytest.raises(InvalidInput) as error:
        requested_notice(parse_request(line), now=0, wall=WALL)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("seconds", "outlook", "said"),
    [
        (
            90,
            {},
            "the shutdown of the pods begins now and takes 30s at most; the machine is expected to be gone in 1m30s",
        ),
        (
            10,
            {},
            "the shutdown of the pods begins now and takes 10s at most; the machine is expected to be gone in 10s",
        ),
        (
            3600,
            {},
            "the shutdown of the pods begins in 45m0s and takes 30s at most; the machine is expected to be gone in 1h0m0s",
        ),
        (
            90,
            {"observes": True},
            "the shutdown of the pods begins now and is only recorded (mode Observe); the machine is expected to be gone in 1m30s",
        ),
        (90, {"requested": 0.0}, "the configuration asks for no time: no pod is ended"),
    ],
)
def test_the_answer_says_what_is_planned(seconds, outlook, said):
    from msgspec.structs import replace

    answer = plan_answer([notice(seconds=seconds)], replace(OUTLOOK, **outlook), now=50.0)
    assert answer["plan"] == said
    assert answer["notices"] == [{"source": "Socket", "seconds": seconds, "reason": "no reason is given"}]


def test_without_a_notice_nothing_is_planned():
    assert plan_answer([], OUTLOOK, now=0)["plan"] == "no notice holds: the machine is expected to stay up"
