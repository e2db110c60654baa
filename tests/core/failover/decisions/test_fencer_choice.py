"""Which fencer is asked what next."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.failover.decisions.case import FencerCall, FencerState
from lastcall.failover.decisions.fencer_choice import LEAST, MARGIN, PAUSE, POLL, STILL, choose_action, order_seconds
from lastcall.failover.decisions.steps import AskPower, AskTarget, SwitchOff, Wait
from lastcall.failover.evidence.facts import PowerSeen
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch
from lastcall.model.power import PowerState

SAME = TargetJudgement(TargetMatch.SAME, "it is the same machine")
OTHER = TargetJudgement(TargetMatch.OTHER, "it is another machine")
SILENT = TargetJudgement(TargetMatch.UNKNOWN, "it does not say")
ON, OFF, UNKNOWN = PowerState.ON, PowerState.OFF, PowerState.UNKNOWN


def device(name="bmc", **known):
    """Which machine is behind it was asked just now, unless a test says when."""
    return FencerState(**{"name": name, "judgement": SAME, "judged": 1e6, **known})


def offs(*tries):
    return tuple(FencerCall(began=began, ended=ended, error=error) for began, ended, error in tries)


def said(*answers, source="bmc", boot="a", took=0):
    return tuple(
        PowerSeen(
            boot_id=boot,
            source=source,
            power=power,
            asked=asked,
            answered=asked + took,
            why="" if power is not UNKNOWN else "busy",
        )
        for asked, power in answers
    )


def chosen(*devices, now):
    return choose_action(devices, boot_id="a", apart=1.0, now=now)


def test_the_target_is_asked_for_before_anything_is_switched_off():
    assert isinstance(chosen(device(judgement=None), now=0), AskTarget)


@pytest.mark.parametrize(
    ("judged", "tries", "step"),
    [
        (41, (), SwitchOff),
        (40, (), AskTarget),
        (90, ((80, 90, "no route"),), SwitchOff),
        (89, ((80, 90, "no route"),), AskTarget),
    ],
    ids=["a while ago", "long ago", "after a try", "before a try"],
)
def test_and_before_each_order_again(judged, tries, step):
    """Its address may be another machine's by now: it was let again, or the board was swapped."""
    for known in (
        device(judged=judged, unanswered=offs(*tries)),
        device(judged=judged, offs=offs(*tries), answers=said((92, UNKNOWN))),
    ):
        assert type(chosen(known, now=100)) is step


def test_and_before_the_status_if_that_was_long_ago():
    known = device("bmc", attempts=1, timeout=600, judged=0, offs=offs((1, 2, "")), answers=said((58, ON)))
    assert isinstance(chosen(known, now=59.5), AskPower)
    again = chosen(known, now=60)
    assert isinstance(again, AskTarget)
    assert "before its status counts" in again.why
    assert isinstance(chosen(replace(known, judged=60), now=61), AskPower)
    silent = replace(known, unanswered=offs((60, 70, "no route")))
    assert chosen(silent, device("pdu", judgement=None), now=70).fencer == "pdu"
    assert isinstance(chosen(silent, now=70 + PAUSE), AskTarget)
    found = replace(silent, judged=70 + PAUSE)
    assert isinstance(chosen(found, now=71 + PAUSE), AskPower)


def test_then_it_is_told_to_switch_off():
    step = chosen(device(timeout=12), now=0)
    assert isinstance(step, SwitchOff)
    assert (step.fencer, step.boot_id, step.within) == ("bmc", "a", 12)
    assert "attempt 1 of 2: it is the same machine" in step.why


@pytest.mark.parametrize("error", ["", "timed out"], ids=["accepted", "failed"])
def test_after_that_the_status_is_asked_whatever_became_of_it(error):
    assert isinstance(chosen(device(offs=offs((0, 2, error))), now=2), AskPower)


def test_an_answer_from_before_does_not_count():
    known = device(offs=offs((2, 4, "")), answers=said((0, OFF), (1, OFF)))
    assert isinstance(chosen(known, now=4), AskPower)


def test_nor_does_one_about_another_boot():
    known = device(offs=offs((2, 4, "")), answers=said((5, OFF), (7, OFF), boot="b"))
    assert "whether" in chosen(known, now=8).why


def test_one_off_is_none_and_the_second_comes_a_second_later():
    known = device(offs=offs((0, 2, "")), answers=said((2, OFF)))
    step = chosen(known, now=2.4)
    assert isinstance(step, Wait)
    assert step.until == 3
    assert isinstance(chosen(known, now=3), AskPower)


def test_a_second_later_than_a_slow_first_answer_had_come():
    known = device(offs=offs((0, 2, "")), answers=said((2, OFF), took=1.5))
    step = chosen(known, now=3.6)
    assert isinstance(step, Wait)
    assert step.until == 4.5
    twice = device(offs=offs((0, 2, "")), answers=said((2, OFF), (3.6, OFF), took=1.5))
    assert "a second time" in chosen(twice, now=5.1).why


def test_while_it_is_on_it_is_asked_until_its_time_is_over_and_then_told_again():
    known = device(timeout=10, offs=offs((0, 2, "")), answers=said((2, ON)))
    step = chosen(known, now=2.1)
    assert isinstance(step, Wait)
    assert step.until == 2 + POLL
    assert isinstance(chosen(known, now=3.5), AskPower)
    over = replace(known, answers=said((2, ON), (12, ON)))
    again = chosen(over, now=12)
    assert isinstance(again, SwitchOff)
    assert "attempt 2 of 2" in again.why


def test_an_order_that_has_failed_may_still_be_carried_out():
    known = device(timeout=60, offs=offs((0, 2, "timed out")), answers=said((2, ON)))
    assert isinstance(chosen(known, now=2 + POLL), AskPower)
    over = replace(known, answers=said((2, ON), (2 + STILL, ON)))
    assert isinstance(chosen(over, now=2 + STILL), SwitchOff)


def test_a_device_that_cannot_be_reached_uses_up_its_attempts_soon():
    known = device(offs=offs((0, 1, "no route")), answers=said((1, UNKNOWN)))
    other = device("pdu")
    step = chosen(known, other, now=1.5)
    assert isinstance(step, Wait)
    assert step.until == 1 + POLL
    second = chosen(known, other, now=2)
    assert (second.fencer, isinstance(second, SwitchOff)) == ("bmc", True)
    failed = replace(known, offs=offs((0, 1, "no route"), (2, 3, "no route")), answers=said((1, UNKNOWN), (3, UNKNOWN)))
    third = chosen(failed, other, now=3)
    assert (third.fencer, isinstance(third, SwitchOff)) == ("pdu", True)


@pytest.mark.parametrize(
    ("known", "step"),
    [({"judgement": None}, AskTarget), ({"judgement": OTHER}, Wait), ({"trouble": "its Secret is gone"}, Wait)],
    ids=["unasked", "another", "trouble"],
)
def test_a_device_that_was_told_is_asked_for_nothing_while_it_may_be_about_another_machine(known, step):
    """As when the Node's annotation that names it was edited in between."""
    edited = device(**{"offs": offs((0, 2, "")), **known})
    assert isinstance(chosen(edited, now=10), step)
    if step is Wait:
        assert chosen(edited, device("pdu"), now=10).fencer == "pdu"


def test_questions_for_the_target_that_are_not_answered_are_attempts():
    known = device(judgement=None, unanswered=offs((0, 1, "no route"), (2, 3, "no route")))
    assert chosen(known, device("pdu"), now=3).fencer == "pdu"


@pytest.mark.parametrize(
    ("suspected", "now", "until"),
    [(100, 100, 160), (100, 159.5, 160), (100, 160, None), (float("-inf"), 0, None)],
    ids=["just suspected", "not over", "over", "told before, by another controller"],
)
def test_a_fencer_is_told_nothing_before_its_delay_is_over(suspected, now, until):
    step = choose_action([device(delay=60.0, judgement=None)], boot_id="a", apart=1.0, now=now, suspected=suspected)
    assert getattr(step, "until", None) == until
    assert isinstance(step, AskTarget if until is None else Wait)


def test_the_delay_of_the_next_one_begins_when_the_one_before_has_failed():
    failed = device("bmc", attempts=1, offs=offs((104, 105, "no route")), answers=said((105, UNKNOWN)))
    asked = {"boot_id": "a", "apart": 1.0, "suspected": 100}
    step = choose_action([failed, device("pdu", delay=30.0)], now=130, **asked)
    assert (type(step), step.until) == (Wait, 135)
    assert step.why == "pdu is told nothing for 30s, as the policy says"
    assert choose_action([failed, device("pdu", delay=30.0)], now=135, **asked).fencer == "pdu"
    unfit = device("bmc", trouble="there is no Secret bmc")
    assert choose_action([unfit, device("pdu", delay=30.0)], now=129, **asked).until == 130


def test_only_the_first_attempt_is_delayed():
    once = device("bmc", delay=60.0, offs=offs((160, 161, "no route")), answers=said((161, UNKNOWN)))
    step = choose_action([once], boot_id="a", apart=1.0, now=161 + POLL, suspected=100)
    assert isinstance(step, SwitchOff)


def test_when_all_have_failed_all_are_tried_again_after_a_pause():
    one = device("bmc", offs=offs((0, 1, "x"), (2, 3, "x")), answers=said((3, UNKNOWN)))
    two = device("pdu", attempts=1, offs=offs((4, 5, "y")), answers=said((5, UNKNOWN), source="pdu"))
    step = chosen(one, two, now=6)
    assert isinstance(step, Wait)
    assert step.until == 5 + PAUSE
    assert "bmc: x, attempts: 2; pdu: y, attempts: 1" in step.why
    again = chosen(one, two, now=5 + PAUSE)
    assert (again.fencer, isinstance(again, SwitchOff)) == ("bmc", True)
    assert "attempt 1 of 2" in again.why


@pytest.mark.parametrize(
    "unfit",
    [
        device(judgement=OTHER),
        device(judgement=OTHER, unchecked=True),
        device(judgement=SILENT),
        device(trouble="there is no Secret bmc"),
    ],
    ids=["another machine", "another machine, unchecked", "silent", "trouble"],
)
def test_what_must_not_be_used_is_passed_over(unfit):
    assert chosen(unfit, device("pdu"), now=0).fencer == "pdu"
    alone = chosen(unfit, now=0)
    assert isinstance(alone, Wait)
    assert alone.until is None
    assert alone.why.startswith("bmc ")


def test_one_that_does_not_say_passes_where_the_policy_says_so():
    assert isinstance(chosen(device(judgement=SILENT, unchecked=True), now=0), SwitchOff)


def test_who_says_off_while_something_else_says_alive_is_asked_on_and_then_not_believed():
    known = device(offs=offs((0, 2, "")), answers=said((2, OFF), (3, OFF)))
    step = chosen(known, device("pdu"), now=4)
    assert isinstance(step, Wait)
    assert isinstance(chosen(known, device("pdu"), now=8), AskPower)
    late = device(offs=known.offs, answers=said((2, OFF), (3, OFF), (43, OFF), (48, OFF)))
    assert chosen(late, device("pdu"), now=49).fencer == "pdu"
    alone = chosen(late, now=49)
    assert isinstance(alone, Wait)
    assert "is not believed" in alone.why


@pytest.mark.parametrize("answers", [[], [(42.9, OFF)], [(43, OFF)]], ids=["none", "a little early", "one"])
def test_who_has_not_been_asked_twice_since_is_asked_before_it_is_not_believed(answers):
    """The course may have waited meanwhile, for a sign of life that came late: what it says now has not been heard."""
    known = device(offs=offs((0, 2, "")), answers=said((2, OFF), (3, OFF), *answers))
    assert chosen(known, device("pdu"), now=65).fencer == "bmc"
    assert isinstance(chosen(known, now=65), AskPower)


def test_on_between_two_offs_begins_anew():
    known = device(offs=offs((0, 2, "")), answers=said((2, OFF), (3, ON), (4, OFF)))
    step = chosen(known, now=4.5)
    assert (isinstance(step, Wait), step.until) == (True, 5)


def test_no_fencer():
    assert chosen(now=0).why == "the policy has no fencer"


@pytest.mark.parametrize(
    ("timeout", "left", "seconds"),
    [(30, 100, 30), (30, 10, 10 - MARGIN), (30, MARGIN + LEAST, LEAST), (30, MARGIN + LEAST - 0.1, 0), (30, -5, 0)],
)
def test_a_request_is_over_before_somebody_else_may_lead(timeout, left, seconds):
    assert order_seconds(timeout, over_by=50 + left, now=50) == pytest.approx(seconds)


@dataclass
class Machine:
    """Obeys its fencers as they let it: what is played against the choice until it is off."""

    works: dict[str, int]
    """How many orders of each fencer are lost before one is carried out; -1: all."""
    lag: float
    known: list[FencerState] = field(default_factory=list)
    now: float = 0.0
    off_at: float = float("inf")
    trace: list[str] = field(default_factory=list)

    def play(self, step):
        at = next((i for i, one in enumerate(self.known) if one.name == getattr(step, "fencer", "")), None)
        match step:
            case Wait(until=until):
                assert until is not None
                assert until > self.now
                self.now = until
            case AskTarget():
                self.now += 0.3
                self.known[at] = replace(self.known[at], judgement=SAME, judged=self.now)
            case SwitchOff():
                self.order(at, step.within)
            case AskPower():
                power = OFF if self.now >= self.off_at else ON
                answer = said((self.now, power), source=self.known[at].name, took=0.3)
                self.now += 0.3
                self.known[at] = replace(self.known[at], answers=(*self.known[at].answers, *answer))

    def order(self, at, limit):
        one, began = self.known[at], self.now
        self.trace.append(one.name)
        left = self.works[one.name]
        self.works[one.name] = left - 1 if left > 0 else left
        self.now += 0.5 if left == 0 else limit
        if left == 0:
            self.off_at = min(self.off_at, self.now + self.lag)
        done = FencerCall(began=began, ended=self.now, error="" if left == 0 else "timed out")
        self.known[at] = replace(one, offs=(*one.offs, done))

    def proved(self):
        return any(
            a.power is OFF and b.power is OFF and b.asked - a.answered >= 1
            for one in self.known
            for a, b in zip(one.answers, one.answers[1:], strict=False)
        )


@given(
    losses=st.lists(st.integers(-1, 4), min_size=1, max_size=3).filter(lambda many: max(many) >= 0),
    attempts=st.integers(1, 3),
    lag=st.floats(0, 8),
)
def test_it_is_off_in_the_end_whatever_some_of_the_fencers_do(losses, attempts, lag):
    names = [f"f{i}" for i in range(len(losses))]
    known = [FencerState(name=name, attempts=attempts, timeout=10) for name in names]
    machine = Machine(works=dict(zip(names, losses, strict=True)), lag=lag, known=known)
    for _ in range(600):
        if machine.proved():
            break
        machine.play(choose_action(machine.known, boot_id="a", apart=1.0, now=machine.now))
    assert machine.proved()
    first = machine.trace[: attempts * len(names)]
    assert first == [name for name in names for _ in range(attempts)][: len(first)], "the policy's order"


@pytest.mark.parametrize("number", [40, 41])
@pytest.mark.parametrize("kind", ["offs", "unanswered"])
@pytest.mark.parametrize("now", [42, 75])
def test_attempts_that_are_not_listed_any_more_count(kind, number, now):
    tries = offs(*((at, at + 1, "no answer") for at in range(number)))
    known = {"judged": 0, "answers": said((41.5, UNKNOWN))}
    every, last = device(**known, **{kind: tries}), device(**known, **{kind: tries[-3:]}, forgotten=number - 3)
    fresh = device("pdu", judgement=None)
    for other in ((), (fresh,)):
        assert chosen(last, *other, now=now) == chosen(every, *other, now=now)
    assert chosen(last, fresh, now=now).fencer == "pdu"
