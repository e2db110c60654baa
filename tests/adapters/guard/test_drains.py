"""Which commands a process remembers."""

from lastcall.adapters.guard.drains import RUNNING_SECONDS, Drains


def test_a_command_is_under_way_for_a_minute_or_until_it_has_ended():
    drains = Drains()
    drains.record_start("a", 10.0)
    assert drains.is_under_way("a", 10.0 + RUNNING_SECONDS - 1)
    assert not drains.is_under_way("a", 10.0 + RUNNING_SECONDS)
    assert not drains.is_done("a")
    drains.record_end("a")
    assert drains.is_done("a")
    assert not drains.is_under_way("a", 11.0)


def test_what_is_forgotten_was_never_begun():
    drains = Drains()
    drains.record_start("a", 10.0)
    drains.record_end("a")
    assert drains.is_known("a")
    drains.forget("a")
    drains.forget("a")
    assert not drains.is_known("a")
    drains.record_end("a")
    assert not drains.is_done("a")


def test_members_that_are_never_asked_about_again_are_not_kept_for_ever():
    drains = Drains()
    for number in range(2000):
        drains.record_start(str(number), float(number) / 1000)
    assert not drains.is_under_way("0", 2.0)
    assert drains.is_under_way("1999", 2.0)
