"""Durations against the documented behaviour of Go's time package."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.model import duration

MS, S, M, H = 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000

READ = {
    "0": 0,
    "-0": 0,
    "+0": 0,
    "0s": 0,
    "-0s": 0,
    "30s": 30 * S,
    "+5s": 5 * S,
    "-5s": -5 * S,
    "5.0s": 5 * S,
    "5.6s": 5_600 * MS,
    "5.s": 5 * S,
    ".5s": 500 * MS,
    "-.5s": -500 * MS,
    "1.004s": 1_004 * MS,
    "1.0040s": 1_004 * MS,
    "100.00100s": 100_001 * MS,
    "007s": 7 * S,
    "10ns": 10,
    "11us": 11_000,
    "12µs": 12_000,  # micro sign
    "12μs": 12_000,  # Greek mu
    "13ms": 13 * MS,
    "15m": 15 * M,
    "16h": 16 * H,
    "3h30m": 3 * H + 30 * M,
    "30m3h": 3 * H + 30 * M,  # in any order
    "1s1s": 2 * S,
    "1h.5m": H + 30 * S,
    "-1.5h": -90 * M,
    "10.5s4m": 4 * M + 10_500 * MS,
    "39h9m14.425s": 39 * H + 9 * M + 14_425 * MS,
    "0.9ns": 0,
    "1.9ns": 1,
    "0.3333333333333333333h": 20 * M,  # in floating point
    "0.100000000000000000000h": 6 * M,  # more digits than 63 bits hold
    "0.830103483285477580700h": 49 * M + 48 * S + 372_539_827,
    "9007199254.740993s": 9_007_199_254_740_993_000,
    "9223372036854775807ns": 2**63 - 1,
    "9223372036.854775807s": 2**63 - 1,
    "9223372036s854ms775us807ns": 2**63 - 1,
    "-9223372036854775808ns": -(2**63),
    "-2562047h47m16.854775808s": -(2**63),
}

INVALID = [
    *("", "+", "-", "s", ".", "-.", ".s", "+.s", "-+5s", " 5s", "abc"),
    *("9223372036854775808ns", "-9223372036854775809ns", "9223372036854775.808us", "2562048h", "9" * 5000 + "s"),
    *("9223372036854775807ns1ns", "99999999999999999999x"),
]

OTHER = {
    "3": 'time: missing unit in duration "3"',
    "30": 'time: missing unit in duration "30"',
    "1.5": 'time: missing unit in duration "1.5"',
    "1s3": 'time: missing unit in duration "1s3"',
    "1.2.3s": 'time: missing unit in duration "1.2.3s"',
    "1d": 'time: unknown unit "d" in duration "1d"',
    "1S": 'time: unknown unit "S" in duration "1S"',
    "1e3s": 'time: unknown unit "e" in duration "1e3s"',
    "1 s": 'time: unknown unit " s" in duration "1 s"',
    "30s ": 'time: unknown unit "s " in duration "30s "',
    "1ś": r'time: unknown unit "\xc5\x9b" in duration "1\xc5\x9b"',
    '1"': r'time: unknown unit "\"" in duration "1\""',
    "1s\n": r'time: unknown unit "s\x0a" in duration "1s\x0a"',
}

PRINTED = {
    0: "0s",
    1: "1ns",
    999: "999ns",
    1_100: "1.1µs",
    1_500: "1.5µs",
    2_200_000: "2.2ms",
    MS: "1ms",
    3_300 * MS: "3.3s",
    S: "1s",
    S + 1: "1.000000001s",
    59 * S + 999_999_999: "59.999999999s",
    M: "1m0s",
    4 * M + 5 * S: "4m5s",
    4 * M + 5_001 * MS: "4m5.001s",
    H: "1h0m0s",
    H + 15 * M: "1h15m0s",
    5 * H + 6 * M + 7_001 * MS: "5h6m7.001s",
    8 * M + 1: "8m0.000000001s",
    -1: "-1ns",
    -90 * S: "-1m30s",
    2**63 - 1: "2562047h47m16.854775807s",
    -(2**63): "-2562047h47m16.854775808s",
}


@pytest.mark.parametrize(("text", "nanoseconds"), READ.items())
def test_reads_as_go_does(text, nanoseconds):
    assert duration.parse(text) == nanoseconds


@pytest.mark.parametrize("text", INVALID)
def test_refuses_in_gos_words(text):
    with pytest.raises(ValueError) as caught:
        duration.parse(text)
    assert str(caught.value) == f'time: invalid duration "{text}"'


@pytest.mark.parametrize(("text", "message"), OTHER.items())
def test_says_what_is_wrong_about_the_unit(text, message):
    with pytest.raises(ValueError) as caught:
        duration.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("nanoseconds", "text"), PRINTED.items())
def test_prints_as_go_does(nanoseconds, text):
    assert duration.format_duration(nanoseconds) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_printed_can_be_read(nanoseconds):
    assert duration.parse(duration.format_duration(nanoseconds)) == nanoseconds


@given(st.text(alphabet='0123456789.+-nuµmsh \t"é', max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text):
    try:
        value = duration.parse(text)
    except ValueError as error:
        value, message = 0, str(error)
    else:
        message = "time: "
    assert -(2**63) <= value < 2**63
    assert message.startswith("time: ")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (30, "30s"), (90.0, "1m30s"), (0.25, "250ms"), (5.5, "5.5s"), (0.0001, "0s")]
)
def test_seconds_for_people(seconds, text):
    assert duration.format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7199.999, "1h59m59s"),
        (59.99999998, "1m0s"),
        (21.016, "21s"),
        (1.427, "1s"),
        (0.9996, "1s"),
        (0.25, "250ms"),
        (0, "0s"),
        (-3.5, "0s"),
    ],
)
def test_time_that_has_gone_by_is_told_in_whole_seconds(seconds, text):
    assert duration.format_elapsed(seconds) == text
