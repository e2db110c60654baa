"""The delay limit: systemd's time spans, which file wins, and what is said about it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.graceful import delay_limit
from lastcall.model import timespan
from lastcall.ports.node import DropIn

OURS = DropIn(path="/etc/systemd/logind.conf.d/zz-lastcall.conf", value="45")
KUBELET = DropIn(path="/etc/systemd/logind.conf.d/99-kubelet.conf", value="30")
VENDOR = DropIn(path="/usr/lib/systemd/logind.conf.d/zzz-vendor.conf", value="10s")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0),
        (" 30 ", 30.0),
        ("0", 0.0),
        ("1h 2min", 3720.0),
        ("1h2min", 3720.0),
        ("1h 30", 3630.0),
        ("5s 200ms", 5.2),
        ("5s200ms", 5.2),
        ("1.5min", 90.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1m", 60.0),
        ("1M", 2_629_800.0),
        ("2 weeks 1 day", 1_296_000.0),
        ("500us", 0.0005),
        ("500µs", 0.0005),
        ("infinity", math.inf),
    ],
)
def test_a_time_span_is_read_as_systemd_reads_it(text, seconds):
    assert timespan.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "  ", "abc", "-5", "5x", "s", "5 fortnights", "infinity 5", "5,5", "٣", "9" * 30])
def test_what_is_no_time_span_is_refused(text):
    with pytest.raises(ValueError):
        timespan.parse(text)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["", "s", "min", "h", "d"])), min_size=1, max_size=4))
def test_the_parts_of_a_time_span_add_up(parts):
    sizes = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}
    text = " ".join(f"{number}{unit}" for number, unit in parts)
    assert timespan.parse(text) == sum(number * sizes[unit] for number, unit in parts)


@pytest.mark.parametrize(
    ("requested", "granted", "needed"),
    [(30, 30.0, False), (30, 29.9, True), (30, math.inf, False), (0, 0.0, False), (30.0000001, 30.0, False)],
)
def test_a_higher_limit_is_needed_only_if_less_is_granted(requested, granted, needed):
    assert delay_limit.grants_too_little(requested, granted) is needed


def test_the_rival_is_the_last_one_after_ours():
    assert delay_limit.overriding_drop_in([KUBELET, OURS]) is None
    assert delay_limit.overriding_drop_in([KUBELET, OURS, VENDOR]) == VENDOR
    assert delay_limit.overriding_drop_in([KUBELET]) is None, "ours is not there, so that nobody beats it"
    assert delay_limit.overriding_drop_in([]) is None


def test_without_a_file_the_default_is_granted():
    assert delay_limit.effective_seconds([]) == 5.0
    assert delay_limit.effective_seconds([OURS, VENDOR]) == 10.0


def explained(*settings, requested=45.0, granted=30.0):
    sentence = delay_limit.explain_limit(settings, requested, granted)
    assert "\n" not in sentence
    return sentence


def test_enough_names_the_file_that_grants_it():
    assert explained(KUBELET, OURS, granted=45.0) == (
        "logind grants 45 s, as /etc/systemd/logind.conf.d/zz-lastcall.conf says InhibitDelayMaxSec=45"
    )
    assert explained(requested=5.0, granted=5.0) == "logind grants 5 s, its default"
    assert explained(requested=5.0, granted=math.inf).startswith("logind grants infinity, which is not what")


def test_a_rival_is_named_with_its_value_and_the_remedy():
    assert explained(KUBELET, OURS, VENDOR, granted=10.0) == (
        "logind grants 10 s of the 45 s asked for: /usr/lib/systemd/logind.conf.d/zzz-vendor.conf says "
        "InhibitDelayMaxSec=10s and is read after zz-lastcall.conf: make an empty file "
        "/etc/systemd/logind.conf.d/zzz-vendor.conf, which hides it"
    )
    in_etc = DropIn(path="/etc/systemd/logind.conf.d/zzz.conf", value="10")
    assert "remove the line there, or give the file a name that sorts before" in explained(OURS, in_etc, granted=10.0)


def test_files_that_logind_has_not_read_yet_are_told():
    assert "systemctl kill --signal=HUP systemd-logind.service" in explained(KUBELET, OURS)


def test_ours_missing_or_too_low_is_told():
    assert "there is no zz-lastcall.conf to raise it" in explained(KUBELET)
    assert "its default, since no file sets" in explained(granted=5.0)
    assert "which was written for a smaller value" in explained(OURS, requested=60.0, granted=45.0)
    main = DropIn(path="/etc/systemd/logind.conf", value="30")
    assert explained(main).endswith("raise it there, or let lastcall write zz-lastcall.conf")


def test_what_is_to_come_of_a_rival_is_foretold():
    assert delay_limit.explain_limit_after_reload([KUBELET, OURS], 45) == ""
    said = delay_limit.explain_limit_after_reload([OURS, VENDOR], 1e6)
    assert VENDOR.path in said
    assert "when it reads its files again" in said


def test_that_no_file_sets_it_any_more_is_foretold():
    assert "no file sets InhibitDelayMaxSec any more: let lastcall write" in delay_limit.explain_limit_after_reload(
        [], 45
    )
