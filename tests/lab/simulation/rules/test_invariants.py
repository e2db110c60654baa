"""Each rule by which runs are judged, told by hand: what breaks it, and what just does not."""

import pytest
from support.simulation.run_records import CRITICAL, Story

from lastcall_lab.simulation.invariants import find_violations
from lastcall_lab.simulation.truth import Noted
from lastcall_lab.volumes.volume_events import VolumeEvent, VolumeEventType

GRANTED = ("pressed", 40.0)


def pressed(at=100.0, **options):
    """Machine n1 goes down."""
    return Story(**options).at(at, "n1", GRANTED)


def gone(story, at):
    return story.at(at, "n1", "down", "off")


def test_a_quiet_run_breaks_nothing():
    assert Story().pod("a").broken() == []


# -- identities and volumes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "owner", "broken"),
    [
        (50.5, "StatefulSet", ["ONE_IDENTITY"]),
        (50.0, "StatefulSet", []),
        (50.5, "ReplicaSet", []),
    ],
)
def test_two_of_one_identity(ended, owner, broken):
    story = Story().pod("db-0", owner=owner, uid="old").at(40, "old", ("asked", 1.0)).at(42, "old", "TERM")
    story.at(ended, "old", "exit").pod("db-0", owner=owner, uid="new", node="n2", began=50.0)
    assert story.broken() == broken


def test_an_identity_whose_machine_lost_its_power_is_free():
    story = Story().pod("db-0", owner="StatefulSet", uid="old").at(40, "n1", "off")
    assert story.pod("db-0", owner="StatefulSet", uid="new", node="n2", began=50.0).broken() == []


def volume(*whats):
    return [VolumeEvent(at=at, what=what, node=node, volume="v", pod=node) for at, (what, node) in enumerate(whats)]


@pytest.mark.parametrize(
    ("whats", "broken"),
    [
        (
            [(VolumeEventType.MOUNTED, "n1"), (VolumeEventType.ATTACHED, "n2"), (VolumeEventType.MOUNTED, "n2")],
            ["ONE_WRITER"],
        ),
        ([(VolumeEventType.MOUNTED, "n1"), (VolumeEventType.DETACHED, "n1")], ["NO_DETACH_IN_USE"]),
        ([(VolumeEventType.MOUNTED, "n1"), (VolumeEventType.UNMOUNTED, "n1"), (VolumeEventType.DETACHED, "n1")], []),
        (
            [
                (VolumeEventType.MOUNTED, "n1"),
                (VolumeEventType.OFF, "n1"),
                (VolumeEventType.ATTACHED, "n2"),
                (VolumeEventType.MOUNTED, "n2"),
            ],
            [],
        ),
    ],
)
def test_who_writes_a_volume(whats, broken):
    story = Story()
    story.more["records"] = volume((VolumeEventType.ATTACHED, "n1"), *whats)
    assert story.broken() == broken


@pytest.mark.parametrize(("what", "rule"), [("lost", "WRITES"), ("left", "ENDS"), ("changed", "OTHERS")])
def test_what_is_told_in_sentences(what, rule):
    story = Story(end=77.0)
    story.more[what] = ["something"]
    assert [(one.at, one.rule.name, one.what) for one in find_violations(story.run())] == [(77.0, rule, "something")]


@pytest.mark.parametrize(
    ("set_back", "broken"), [(60.0, ["ONE_IDENTITY", "UNASKED"]), (45.0, ["ONE_IDENTITY"]), (30.0, [])]
)
def test_after_objects_were_set_back_they_prove_nothing(set_back, broken):
    story = Story().pod("db-0", owner="StatefulSet", uid="old").pod("b")
    story.pod("db-0", owner="StatefulSet", uid="new", node="n2", began=40.0).at(50, "b", "TERM", "exit")
    story.more["set_back"] = set_back
    assert story.broken() == broken


def test_after_objects_were_set_back_phases_and_machines_are_judged_all_the_same():
    story = pressed().pod("low").pod("high", priority=CRITICAL).at(100, "low", "TERM").at(109, "high", "TERM", "exit")
    story.more["set_back"] = 1.0
    assert gone(story.at(110, "low", "exit"), 110).broken() == ["ORDER"]


@pytest.mark.parametrize(
    ("node", "since", "broken"), [("n1", 80.0, []), ("n1", 95.0, ["ORDER"]), ("n2", 80.0, ["ORDER"])]
)
def test_a_kubelet_that_begins_with_an_older_list_ends_a_pod_out_of_turn(node, since, broken):
    story = pressed().pod("low").pod("high", priority=CRITICAL, began=90.0).at(100.1, "n1", "agent killed")
    story.at(100.5, "n1", "agent started").at(100.6, "low", "TERM").at(100.6, "high", "KILL", "exit")
    story.more |= {"set_back": 100.5, "old_lists": [Noted(100.5, node, since)]}
    assert gone(story.at(110, "low", "exit"), 110).broken() == broken


# -- how pods are ended ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_nobody_is_ended_unasked(signal):
    assert Story().pod("a").at(50, "a", signal, "exit").broken() == ["UNASKED"]
    assert Story().pod("a").at(50, "a", "exit").broken() == []


def test_a_shutdown_of_another_machine_is_no_reason():
    story = pressed().pod("a", node="n2").at(101, "a", "TERM", "exit")
    assert gone(story, 102).broken() == ["UNASKED"]


@pytest.mark.parametrize(("first", "broken"), [(109.0, []), (112.0, ["UNASKED"])])
def test_a_shutdown_that_was_called_off_is_no_reason_any_more(first, broken):
    story = pressed().at(110, "n1", "cancelled").pod("a").at(first, "a", "TERM")
    assert story.at(115, "a", "exit").broken() == broken


def test_what_was_begun_before_it_was_called_off_goes_on():
    story = pressed().pod("a", hook=8.0).at(100, "a", "hook").at(103, "n1", "cancelled")
    assert story.at(108, "a", "hook over", "TERM").at(109, "a", "exit").broken() == []


@pytest.mark.parametrize(("kill", "broken"), [(129.9, []), (120.0, ["KILL"])])
def test_nothing_shows_that_an_end_was_taken_over_before_it_was_called_off(kill, broken):
    story = pressed().pod("a", grace=60).at(98, "a", ("asked", 60.0), "TERM")
    story.pod("b").at(100, "b", "TERM").at(101, "b", "exit").at(103, "n1", "cancelled")
    assert story.at(kill, "a", "KILL", "exit").broken() == broken


@pytest.mark.parametrize(
    ("told", "broken"),
    [
        ([(50, "TERM")], ["PRE_STOP"]),
        ([(50, "hook"), (52, "TERM")], ["PRE_STOP"]),
        ([(50, "hook"), (52, "hook over"), (52, "TERM")], ["PRE_STOP"]),
        ([(50, "hook"), (58, "hook over"), (58, "TERM")], []),
        ([(50, "hook"), (59.9, "hook over"), (59.9, "TERM")], []),
    ],
)
def test_hooks_of_a_deleted_pod(told, broken):
    story = Story().pod("a", hook=8.0, grace=60).at(50, "a", ("asked", 60.0))
    for at, what in told:
        story.at(at, "a", what)
    assert story.at(60, "a", "exit").broken() == broken


@pytest.mark.parametrize(("began", "broken"), [(95, []), (100, ["PRE_STOP"])])
def test_of_two_hooks_at_once_each_has_an_end_of_its_own(began, broken):
    """Kubelet and agent may both end a pod."""
    story = pressed().pod("a", hook=8.0, grace=60).at(95, "a", ("asked", 60.0), "hook").at(100, "a", "hook")
    story.at(103, "a", ("hook over", began), "TERM").at(105, "a", "exit")
    assert gone(story, 106).broken() == broken


@pytest.mark.parametrize(("term", "broken"), [(54.9, ["PRE_STOP"]), (55.0, [])])
def test_a_hook_has_the_grace_that_the_deletion_says(term, broken):
    story = Story().pod("a", hook=45.0, grace=60).at(50, "a", ("asked", 5.0), "hook")
    assert story.at(term, "a", "hook over", "TERM").at(term, "a", "exit").broken() == broken


@pytest.mark.parametrize(("at", "broken"), [(50.5, ["PRE_STOP", "KILL"]), (51.0, [])])
def test_a_pod_that_is_gone_has_a_second(at, broken):
    story = Story().pod("a", hook=45.0, grace=60).at(50, "a", ("asked", 0.0))
    assert story.at(at, "a", "KILL", "exit").broken() == broken


def test_a_hook_cannot_run_while_the_runtime_is_away():
    story = Story().at(49, "n1", "no runtime").at(55, "n1", "no runtime over")
    story.pod("a", hook=8.0).at(50, "a", ("asked", 30.0))
    assert story.at(55, "a", "TERM").at(56, "a", "exit").broken() == []


@pytest.mark.parametrize(
    ("plan", "kill", "broken"),
    [
        (((0, 30),), 129.5, ["KILL"]),
        (((0, 30),), 129.9, []),
        (((0, 60),), 159.8, ["KILL"]),
        (((0, 20), (CRITICAL, 10)), 119.5, ["KILL"]),
        (((0, 20), (CRITICAL, 10)), 119.9, []),
    ],
)
def test_a_kill_in_a_shutdown_waits_for_the_grace_or_the_end_of_the_phase(plan, kill, broken):
    story = Story(plan=plan).at(100, "n1", ("pressed", 100.0)).pod("a", grace=60).at(100, "a", "TERM")
    assert gone(story.at(kill, "a", "KILL", "exit"), kill).broken() == broken


@pytest.mark.parametrize(("kill", "broken"), [(61.0, ["KILL"]), (62.0, [])])
def test_two_seconds_lie_between_the_two_signals(kill, broken):
    story = Story().pod("a", hook=45.0, grace=10).at(50, "a", ("asked", 10.0), "hook")
    assert story.at(60, "a", "hook over", "TERM").at(kill, "a", "KILL", "exit").broken() == broken


@pytest.mark.parametrize(("kill", "broken"), [(58.0, ["KILL"]), (65.0, [])])
def test_a_deletion_can_shorten_one_before_it(kill, broken):
    story = Story().pod("a", grace=600).at(50, "a", ("asked", 600.0), "TERM").at(55, "a", ("asked", 10.0))
    assert story.at(kill, "a", "KILL", "exit").broken() == broken


def test_a_phase_without_seconds_gives_none():
    story = Story(plan=((0, 30), (CRITICAL, 0))).at(100, "n1", ("pressed", 40.0))
    story.pod("a", priority=CRITICAL, hook=8.0).at(100, "a", "TERM").at(100.06, "a", "KILL", "exit")
    assert gone(story, 100.1).broken() == []


def test_an_agent_that_was_dead_has_no_more_time_than_there_was():
    story = pressed().at(99, "n1", "agent killed").at(132, "n1", "agent started").pod("a", hook=8.0)
    assert gone(story.at(132, "a", "TERM").at(134, "a", "exit"), 134).broken() == []


@pytest.mark.parametrize(("kill", "broken"), [(101.5, ["KILL"]), (101.8494, [])])
def test_the_kill_of_a_pod_that_was_ending_before_does_not_show_when_its_phase_began(kill, broken):
    """3.95 s for both phases: the first has 1.95 s from the button on, and SIGKILL goes out 0.1 s before they are over."""
    story = Story(plan=((0, 5), (CRITICAL, 2))).pod("a", grace=60)
    story.at(97, "a", ("asked", 60.0)).at(97, "a", "TERM").at(100, "n1", ("pressed", 4.0))
    assert gone(story.at(kill, "a", "KILL", "exit"), 102.0).broken() == broken


@pytest.mark.parametrize(("away", "broken"), [(True, []), (False, ["KILL"])])
def test_a_signal_that_could_not_be_sent_in_time_leaves_no_two_seconds(away, broken):
    story = pressed().pod("a", grace=1)
    if away:
        story.at(99, "n1", "no runtime").at(107, "n1", "no runtime over")
    story.at(107, "a", "TERM", "KILL", "exit")
    assert gone(story, 107).broken() == broken


# -- the order of phases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "critical", "broken"),
    [
        (110.0, 110.0, []),
        (110.0, 109.0, ["ORDER"]),
        (140.0, 130.0, []),
        (140.0, 129.0, ["ORDER"]),
    ],
)
def test_a_phase_waits_for_the_one_below_it(ended, critical, broken):
    story = (
        pressed(bounded=False)
        .pod("low")
        .pod("high", priority=CRITICAL)
        .at(100, "low", "TERM")
        .at(critical, "high", "TERM")
    )
    story.at(critical, "high", "exit").at(ended, "low", "exit")
    assert gone(story, ended).broken() == broken


# -- no more time than there is ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grace", "priority", "granted", "ended", "broken"),
    [
        (60, 0, 40.0, 130.0, []),
        (60, 0, 40.0, 130.2, ["OVERRUN"]),
        (10, 0, 40.0, 112.0, []),
        (10, 0, 40.0, 112.2, ["OVERRUN"]),
        (60, CRITICAL, 40.0, 110.2, ["OVERRUN"]),
        (60, 0, 25.0, 114.95, []),  # 10 of the 25 seconds are for critical pods
        (60, 0, 25.0, 115.1, ["OVERRUN"]),
        (60, CRITICAL, 8.0, 107.9, []),
    ],
)
def test_no_pod_has_more_than_its_grace_or_than_its_phase(grace, priority, granted, ended, broken):
    story = Story().at(100, "n1", ("pressed", granted)).pod("a", grace=grace, priority=priority)
    story.pod("high", priority=CRITICAL).at(ended - 0.001, "high", "exit")
    story.at(100, "a", "TERM").at(ended, "a", "KILL", "exit")
    assert gone(story, ended).broken() == broken


@pytest.mark.parametrize("trouble", [("agent killed", "agent started"), ("no runtime", "no runtime over")])
def test_what_could_not_be_ended_in_time_is_excused(trouble):
    story = pressed().pod("a").at(100, "a", "TERM").at(120, "n1", trouble[0]).at(132, "n1", trouble[1])
    assert gone(story.at(133, "a", "KILL", "exit"), 133).broken() == []


def test_a_kubelet_does_not_promise_that():
    story = pressed(bounded=False).pod("a").at(100, "a", "TERM").at(135, "a", "KILL", "exit")
    assert gone(story, 135).broken() == []


def test_a_lower_one_that_is_never_begun():
    story = pressed().pod("low").pod("high", priority=CRITICAL).at(100, "high", "TERM").at(101, "high", "exit")
    assert story.at(101, "n1", "down").at(101, "n1", "off").broken() == ["ORDER", "LOCK_LOST"]


def test_who_was_deleted_before_has_a_time_of_his_own():
    story = pressed().pod("low").pod("high", priority=CRITICAL).at(90, "high", ("asked", 30.0), "TERM")
    story.at(100, "low", "TERM").at(105, "high", "exit").at(110, "low", "exit")
    assert gone(story, 110).broken() == []


# -- what is started ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "broken"), [(100.04, []), (100.2, ["NO_START"]), (131.0, [])])
def test_nothing_is_started_on_a_machine_that_goes_down(at, broken):
    story = pressed().pod("a").at(100, "a", "TERM").at(120, "a", "exit").at(130, "n1", "cancelled")
    story.happenings = [one for one in story.pod("b").happenings if one.uid != "b"]
    story.at(at, "b", "order")
    assert story.broken() == broken


def test_a_start_that_was_ordered_before_may_come():
    story = pressed().pod("a", began=99.0)
    story.happenings[-1] = story.happenings[-1]._replace(at=105.0)
    story.at(106, "a", "TERM").at(107, "a", "exit")
    assert gone(story, 107).broken() == []


@pytest.mark.parametrize(("bus", "broken"), [(True, []), (False, ["NO_START"])])
def test_who_cannot_ask_does_not_know_that_it_goes_down(bus, broken):
    story = pressed().pod("a", began=103.0).at(110, "n1", "cancelled")
    if bus:
        story.at(99, "n1", "no bus").at(109, "n1", "no bus over")
    assert story.broken() == broken


# -- the lock ----------------------------------------------------------------------------------------------------------


def unlocked(*, at=100.0):
    return Story().pod("a").at(at, "n1", ("pressed without a lock", 40.0), "down", "off")


def test_a_machine_with_pods_goes_down_without_a_lock():
    assert unlocked().broken() == ["LOCK_LOST"]


def test_a_machine_without_pods_may():
    assert unlocked().at(50, "a", "exit").broken() == []


@pytest.mark.parametrize(
    ("told", "broken"),
    [
        ([(90, "agent killed")], ["LOCK_LOST"]),
        ([(90, "agent killed"), (95, "holder killed")], []),
        ([(80, "holder killed"), (90, "agent killed")], ["LOCK_LOST"]),
        ([(90, "agent killed"), (95, "holder killed"), (97, "agent started")], ["LOCK_LOST"]),
        ([(90, "agent killed"), (95, "holder killed"), (99, "agent started")], []),
        ([(0, "no bus"), (98, "no bus over")], []),
        ([(89, "no bus"), (98, "no bus over")], ["LOCK_LOST"]),
    ],
)
def test_who_holds_the_lock_while_programs_die(told, broken):
    story = unlocked()
    for at, what in told:
        story.at(at, "n1", what)
    assert story.broken() == broken


@pytest.mark.parametrize(("agent", "broken"), [("lives", ["LOCK_LOST"]), ("dies", [])])
def test_a_lock_after_a_shutdown_that_was_called_off(agent, broken):
    story = unlocked().at(60, "n1", GRANTED).at(62, "n1", "cancelled")
    if agent == "dies":
        story.at(61, "n1", "agent killed")
    assert story.broken() == broken


@pytest.mark.parametrize(("down", "broken"), [(125.0, ["LOCK_LOST"]), (140.0, [])])
def test_the_lock_is_held_while_there_are_pods_and_time(down, broken):
    story = pressed(bounded=False).pod("a").at(100, "a", "TERM")
    assert story.at(down, "n1", "down", "off").broken() == broken


@pytest.mark.parametrize(
    ("started", "down", "broken"),
    [
        (150, 140.0, []),
        (150, 139.0, ["LOCK_LOST"]),
        (104, 140.0, ["LOCK_LOST"]),
    ],
)
def test_a_deadline_of_what_was_called_off_stands_while_nobody_lives_who_could_tell(started, down, broken):
    story = (
        pressed().pod("a").at(102, "n1", "agent killed").at(103, "n1", "cancelled").at(started, "n1", "agent started")
    )
    assert story.at(110, "n1", GRANTED).at(down, "n1", "down", "off").broken() == broken


def test_a_runtime_that_is_away_is_waited_for():
    story = pressed().at(99, "n1", "no runtime").at(104, "n1", "no runtime over").pod("a")
    assert story.at(110, "n1", "down", "off").broken() == ["LOCK_LOST"]


def test_a_lock_that_is_let_go_by_force():
    story = pressed().pod("a").at(101, "n1", "agent killed").at(102, "n1", "holder killed", "down", "off")
    assert story.broken() == []


@pytest.mark.parametrize(("down", "broken"), [(114.0, []), (116.0, ["LOCK_KEPT"])])
def test_the_lock_is_let_go_when_the_last_pod_has_ended(down, broken):
    story = pressed().pod("a").at(100, "a", "TERM").at(110, "a", "exit")
    assert gone(story, down).broken() == broken


@pytest.mark.parametrize(("down", "broken"), [(124.0, []), (140.0, ["LOCK_KEPT"])])
def test_a_dead_agent_lets_nothing_go(down, broken):
    story = pressed().at(105, "n1", "agent killed").at(118, "n1", "agent started")
    story.pod("a").at(100, "a", "TERM").at(110, "a", "exit")
    assert gone(story, down).broken() == broken


@pytest.mark.parametrize(("down", "broken"), [(140.0, []), (140.2, ["LOCK_KEPT"])])
def test_nor_beyond_the_deadline_whatever_lives(down, broken):
    story = pressed(bounded=False).pod("a").at(100, "a", "TERM")
    story.powers = [one._replace(amount=60.0) if one.what == "pressed" else one for one in story.powers]
    assert gone(story, down).broken() == broken


@pytest.mark.parametrize(("end", "broken"), [(139.0, []), (150.0, ["LOCK_KEPT"])])
def test_a_shutdown_that_never_ends(end, broken):
    assert pressed(end=end, bounded=False).pod("a").at(100, "a", "TERM").broken() == broken


def test_where_nobody_ends_pods_nobody_holds_a_lock():
    story = Story(plan=None).pod("a").at(100, "n1", ("pressed without a lock", 5.0), "down", "off")
    assert story.broken() == []


# -- agents ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("told", "broken"), [([], ["ONE_AGENT"]), (["agent killed"], []), (["off", "on"], [])])
def test_one_agent_on_a_machine(told, broken):
    assert Story().at(50, "n1", *told).at(51, "n1", "agent started").broken() == broken
