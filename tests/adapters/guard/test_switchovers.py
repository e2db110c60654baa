"""Which switchovers a process remembers."""

from lastcall.adapters.guard.switchovers import SETTLING_SECONDS, Switchover, Switchovers


def test_a_switchover_is_known_for_a_minute():
    known = Switchovers()
    known.record("a", 10.0)
    assert known.find("a", 10.0 + SETTLING_SECONDS - 1) == Switchover(10.0)
    assert known.find("a", 10.0 + SETTLING_SECONDS) is None
    assert known.find("b", 10.0) is None


def test_a_refusal_takes_its_place_until_it_is_forgotten():
    known = Switchovers()
    known.record("a", 10.0)
    known.record("a", 11.0, "412 no")
    assert known.find("a", 12.0) == Switchover(11.0, "412 no")
    known.forget("a")
    known.forget("a")
    assert known.find("a", 12.0) is None


def test_members_that_are_never_asked_about_again_are_not_kept_for_ever():
    known = Switchovers()
    for number in range(2000):
        known.record(str(number), float(number) / 1000)
    assert known.find("0", 2.0) is None
    assert known.find("1999", 2.0)
