"""What a rehearsal measures, with numbers that were computed by hand; no loop, no cluster."""

from math import inf

import msgspec
import pytest

from lastcall.errors import InvalidInput
from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.measurements.leaders import LeaderCandidate, led_spans
from lastcall_lab.simulation.measurements.nodes import machine_states, up_spans
from lastcall_lab.simulation.measurements.timeline import timeline_lines
from lastcall_lab.simulation.measurements.verdicts import check_expectation
from lastcall_lab.simulation.measurements.workload_outcome import WorkloadEvidence, measure_workload
from lastcall_lab.simulation.outcome import CountStep, MachineState, ReportedViolation, TimelineLine, TimelineTopic
from lastcall_lab.simulation.request_losses import EndpointUpdate, FailureSpan, failure_spans
from lastcall_lab.simulation.scenario import (
    Expectation,
    Goal,
    LeaderSettings,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.time_spans import TimeSpan, count_spans, countdown_curve, join_spans, spans_where
from lastcall_lab.simulation.truth import MachineEvent
from lastcall_lab.simulation.volume_writers import WriteAttempt, stale_writes
from lastcall_lab.volumes.volume_events import VolumeEvent, VolumeEventType

MINUTE = TimeSpan(100.0, 160.0)


def life(uid="a", began=0.0, ended=None, *, node="node-1", **more):
    return ContainerLife(node, uid, "main", began, ended, **more)


def web(**more):
    said = {"kind": ScenarioWorkloadKind.DEPLOYMENT, "name": "web", "replicas": 4, "requests": 20.0, "ready": 1.0}
    return ScenarioWorkload(**(said | more))


def knows(*uids, at=50.0):
    return EndpointUpdate(at, uids, ())


# -- spans -------------------------------------------------------------------------------------------------------------


def test_spans_are_counted_within_bounds():
    spans = [TimeSpan(0, 110), TimeSpan(90, 120), TimeSpan(110, 120), TimeSpan(150, inf), TimeSpan(130, 130)]
    assert count_spans(spans, MINUTE) == [(100, 2), (120, 0), (150, 1)]
    assert count_spans([], MINUTE) == [(100, 0)]


def test_what_ends_before_is_counted_at_the_beginning_and_what_ends_after_not_at_all():
    assert countdown_curve(3, [20, 120, 160], MINUTE) == [(100, 2), (120, 1)]


def test_two_curves_are_compared_piece_by_piece():
    assert spans_where(([(0, 2), (5, 1)], [(0, 1), (3, 2), (7, 1)]), 10, lambda a, b: a == b) == [
        TimeSpan(3, 5),
        TimeSpan(7, 10),
    ]
    assert join_spans([TimeSpan(0, 1), TimeSpan(1, 1), TimeSpan(1, 2), TimeSpan(3, 4)]) == [
        TimeSpan(0, 2),
        TimeSpan(3, 4),
    ]


# -- requests ----------------------------------------------------------------------------------------------------------


def serves(**spans):
    return {uid: [TimeSpan(*span)] for uid, span in spans.items()}


@pytest.mark.parametrize(
    ("learned", "serving", "expected"),
    [
        ([knows("a", "b")], serves(a=(0, inf), b=(0, inf)), []),
        ([knows("a", "b")], serves(a=(0, inf), b=(0, 155)), [FailureSpan(155, 160, 0.5)]),
        (
            [knows("a", "b"), EndpointUpdate(112, (), ("b",))],
            serves(a=(0, inf), b=(0, 110)),
            [FailureSpan(110, 112, 0.5)],
        ),
        ([knows("a"), EndpointUpdate(120, ("b",), ())], serves(a=(0, inf), b=(123, inf)), [FailureSpan(120, 123, 0.5)]),
        ([knows("a"), EndpointUpdate(120, (), ("a",))], serves(a=(0, inf)), [FailureSpan(120, 160, 1.0)]),
        ([knows("a"), EndpointUpdate(120, ("b",), ("a",))], serves(a=(0, 120), b=(120, inf)), []),
        ([knows("a"), EndpointUpdate(170, (), ("a",))], serves(a=(0, inf)), []),
        ([knows("a")], {"a": [TimeSpan(0, 110), TimeSpan(115, inf)]}, [FailureSpan(110, 115, 1.0)]),
        ([], serves(a=(0, inf)), [FailureSpan(100, 160, 1.0)]),
        ([knows("a", "b")], serves(a=(0, inf)), [FailureSpan(100, 160, 0.5)]),
    ],
    ids=[
        "all serve",
        "one stops",
        "and is forgotten later",
        "known too early",
        "nobody known",
        "one for another",
        "after the end",
        "restarted",
        "never known",
        "never served",
    ],
)
def test_the_part_of_connections_that_fails(learned, serving, expected):
    assert failure_spans(learned, serving, MINUTE) == expected


def test_sigterm_without_a_hook_costs_the_rate_times_the_delay_divided_by_the_pods():
    lives = [*(life(uid) for uid in "abc"), life("d", ended=115.0, term=110.0)]
    learned = [knows(*"abcd"), EndpointUpdate(110.5, (), ("d",))]
    naive = measure_workload(web(drains=False), WorkloadEvidence(within=MINUTE, lives=lives, learned=learned))
    assert naive.requests == 20 * 60
    assert naive.requests_lost == 20 * 0.5 / 4
    assert (
        measure_workload(web(drains=True), WorkloadEvidence(within=MINUTE, lives=lives, learned=learned)).requests_lost
        == 0
    )


def test_a_hook_that_is_longer_than_the_delay_costs_nothing():
    lives = [*(life(uid) for uid in "abc"), life("d", ended=113.0, term=112.0, hooks=[[110.0, 112.0]])]
    learned = [knows(*"abcd"), EndpointUpdate(110.5, (), ("d",))]
    found = measure_workload(
        web(drains=False, pre_stop=2.0), WorkloadEvidence(within=MINUTE, lives=lives, learned=learned)
    )
    assert (found.requests_lost, found.losses, found.hooks_missed) == (0, (), 0)


def test_nobody_asks_a_workload_without_requests():
    found = measure_workload(web(requests=0.0), WorkloadEvidence(within=MINUTE, lives=[life()]))
    assert (found.requests, found.requests_lost, found.losses) == (0, 0, ())


# -- down and degraded -------------------------------------------------------------------------------------------------


def test_down_is_when_nothing_serves_and_degraded_when_too_few_do():
    lives = [life("a", ended=110.0), life("b", ended=120.0, cut=True), life("c", began=129.0)]
    found = measure_workload(web(replicas=2, requests=0.0), WorkloadEvidence(within=MINUTE, lives=lives))
    assert found.serving_steps == (
        CountStep(at=0, count=2),
        CountStep(at=10, count=1),
        CountStep(at=20, count=0),
        CountStep(at=30, count=1),
    )
    assert (found.down, found.longest_outage, found.degraded) == (10, 10, 50)
    assert (found.wanted, found.serving, found.power_cut) == (2, 1, 1)


def test_of_several_outages_the_longest_is_told():
    lives = [life("a", ended=110.0), life("a", began=111.0, ended=120.0, kill=120.0), life("a", began=125.0)]
    found = measure_workload(web(replicas=1, requests=0.0), WorkloadEvidence(within=MINUTE, lives=lives))
    assert [(one.begin, one.end) for one in found.outages] == [(10, 12), (20, 26)]
    assert (found.down, found.longest_outage, found.restarts, found.killed) == (8, 6, 2, 1)


def test_no_pod_of_a_stateful_set_serves_in_the_place_of_another():
    lives = [life("a", ended=110.0), life("b"), life("c", began=119.0)]
    names = {"a": "db-0", "b": "db-1", "c": "db-0"}
    workload = ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=2)
    found = measure_workload(workload, WorkloadEvidence(within=MINUTE, lives=lives, names=names))
    assert (found.down, found.pod_down, found.degraded) == (0, 10, 10)
    assert found.longest_outage == 10, "the report shows it beside pod_down"
    assert check_expectation(Expectation(goal=Goal.DOWN_FOR, limit=9), [found]).measured == "10s"
    assert measure_workload(workload, WorkloadEvidence(within=MINUTE, lives=lives[:1], names=names)).pod_down == 60, (
        "db-1 never came"
    )


def test_a_daemon_is_not_wanted_on_a_machine_that_is_off():
    lives = [life("a"), life("b", ended=110.0), life("c", began=140.0)]
    workload = ScenarioWorkload(kind=ScenarioWorkloadKind.DAEMON_SET, name="logs", ready=1.0)
    here, there = TimeSpan(0, inf), [TimeSpan(0, 108), TimeSpan(140, inf)]
    found = measure_workload(workload, WorkloadEvidence(within=MINUTE, lives=lives, up=[here, *there]))
    assert [(one.at, one.count) for one in found.wanted_steps] == [(0, 2), (8, 1), (40, 2)]
    assert (found.down, found.degraded) == (0, 1)


def test_a_job_that_is_done_is_wanted_no_longer_and_one_that_was_killed_is():
    lives = [life("a", ended=110.0), life("b", ended=120.0, cut=True), life("c", began=125.0, ended=150.0)]
    found = measure_workload(
        ScenarioWorkload(kind=ScenarioWorkloadKind.JOB, name="batch", replicas=2),
        WorkloadEvidence(within=MINUTE, lives=lives),
    )
    assert [(one.at, one.count) for one in found.wanted_steps] == [(0, 2), (10, 1), (50, 0)]
    assert found.down == 5


@pytest.mark.parametrize(
    ("ended", "missed"),
    [
        ({"ended": 113.0, "term": 112.0, "hooks": [[110.0, 112.0]]}, 0),
        ({"ended": 113.0, "term": 111.0, "hooks": [[110.0, 111.0]]}, 1),
        ({"ended": 113.0, "term": 111.0, "hooks": [[110.0, 112.0]]}, 1),
        ({"ended": 113.0, "term": 112.0}, 1),
        ({"ended": 111.0, "cut": True, "hooks": [[110.0]]}, 1),
        ({"ended": 111.0, "cut": True}, 1),
        ({"ended": 111.0}, 0),
        ({"ended": 99.0, "cut": True}, 0),
    ],
    ids=[
        "whole",
        "cut off",
        "not waited for",
        "none",
        "power lost in it",
        "power lost",
        "by itself",
        "before it began",
    ],
)
def test_a_hook_that_has_not_run_to_its_end_is_missed(ended, missed):
    found = measure_workload(web(pre_stop=2.0), WorkloadEvidence(within=MINUTE, lives=[life(**ended)]))
    assert found.hooks_missed == missed


# -- leaders -----------------------------------------------------------------------------------------------------------

LEADER = LeaderSettings(handover=1.0, election=10.0)


def candidate(begin, end=inf, **more):
    return LeaderCandidate(TimeSpan(begin, end), **more)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([candidate(0), candidate(1)], [(0, inf)]),
        ([candidate(0, 115, hook=110), candidate(1)], [(0, 110), (111, inf)]),
        ([candidate(0, 110), candidate(1)], [(0, 110), (120, inf)]),
        ([candidate(0, 112, term=110), candidate(1)], [(0, 112), (122, inf)]),
        ([candidate(0, 110.5, hook=110), candidate(1)], [(0, 110), (120.5, inf)]),
        ([candidate(0, 110), candidate(130)], [(0, 110), (130, inf)]),
        ([candidate(0, 110), candidate(1, 125, hook=119), candidate(2)], [(0, 110), (120, inf)]),
        ([candidate(0, 110), candidate(1, 125, term=119), candidate(2)], [(0, 110), (120, inf)]),
        ([candidate(0, 110), candidate(1, 115)], [(0, 110)]),
        ([], []),
    ],
    ids=[
        "stays",
        "hands over",
        "dies",
        "ends unwarned",
        "dies in its hook",
        "alone",
        "not one that goes",
        "nor one that was told to",
        "none",
        "no",
    ],
)
def test_who_leads(candidates, expected):
    assert led_spans(candidates, LEADER) == expected


def test_without_a_leader_a_workload_is_down():
    lives = [life("a", began=0.0, ended=110.0, cut=True), life("b", began=1.0)]
    found = measure_workload(web(replicas=2, requests=0.0, leader=LEADER), WorkloadEvidence(within=MINUTE, lives=lives))
    assert (found.down, found.degraded) == (10, 50)


def test_a_handover_is_degraded_time_even_if_enough_pods_serve():
    lives = [life("a", ended=115.0, term=114.0, hooks=[[110.0, 114.0]]), life("b", began=1.0), life("c", began=105.0)]
    found = measure_workload(
        web(replicas=2, requests=0.0, pre_stop=4.0, leader=LEADER), WorkloadEvidence(within=MINUTE, lives=lives)
    )
    assert (found.down, found.degraded, found.longest_outage) == (1, 1, 1)


# -- machines, timeline, verdicts --------------------------------------------------------------------------------------


def powers(*found, node="node-1"):
    return [MachineEvent(at, node, what) for at, what in found]


def test_a_machine_over_time():
    found = machine_states(
        powers(
            (0, "on"), (105, "partition"), (110, "mended"), (115, "pressed"), (120, "off"), (130, "on"), (135, "hang")
        ),
        10.0,
        MINUTE,
    )
    assert [(span.begin, span.end, state.value) for span, state in found] == [
        (100, 105, "on"),
        (105, 110, "cut off"),
        (110, 115, "on"),
        (115, 120, "going down"),
        (120, 130, "off"),
        (130, 135, "starting"),
        (135, 160, "hung"),
    ]
    assert up_spans(found) == [TimeSpan(100, 105), TimeSpan(105, 110), TimeSpan(110, 115), TimeSpan(135, 160)]


def test_a_fault_changes_nothing_of_a_machine_that_goes_down_and_is_there_when_that_is_called_off():
    found = machine_states(powers((0, "on"), (110, "pressed"), (115, "storage"), (120, "cancelled")), 10.0, MINUTE)
    assert [(span.begin, state) for span, state in found] == [
        (100, MachineState.ON),
        (110, MachineState.GOING_DOWN),
        (120, MachineState.NO_STORAGE),
    ]


def test_power_off_ends_a_fault():
    found = machine_states(
        powers((0, "on"), (101, "hang"), (102, "off"), (103, "on"), (120, "pressed"), (130, "cancelled")), 10.0, MINUTE
    )
    assert found[-1] == (TimeSpan(130, 160), MachineState.ON)


def test_a_machine_whose_agent_dies_while_it_starts_still_comes_up():
    found = machine_states(powers((0, "on"), (110, "off"), (120, "on"), (125, "agent killed")), 10.0, MINUTE)
    assert [span.begin for span, _ in found] == [100, 110, 120, 130]
    assert found[-1][1] is MachineState.ON


def test_the_timeline_says_alike_things_once_and_what_is_wanted_before_what_comes_of_it():
    lives = [life(uid, ended=110.2, cut=True, node=node) for uid, node in (("a", "node-1"), ("b", "node-2"))]
    nodes = [f"node-{number}" for number in range(1, 6)]
    assert timeline_lines(
        [ScenarioEvent(at=10.0, verb=Verb.POWER_CUT, nodes=("rack b", "node-9"), lasts=5.0)],
        [MachineEvent(110.0, node, "off") for node in nodes] + [MachineEvent(90.0, "node-1", "on")],
        [("web", lives)],
        [ReportedViolation(at=10.2, rule="one live pod", what="two")],
        MINUTE,
    ) == (
        TimelineLine(at=10.0, topic=TimelineTopic.EVENT, text="cut the power of rack b and node-9 for 5s"),
        TimelineLine(at=10.0, topic=TimelineTopic.MACHINE, text="power off: node-1, node-2 and 3 more"),
        TimelineLine(at=10.2, topic=TimelineTopic.PODS, text="2 pods of web lose their power on node-1, node-2"),
        TimelineLine(at=10.2, topic=TimelineTopic.VIOLATION, text="one live pod: two"),
    )


def outcome_of(name="web", **more):
    return msgspec.structs.replace(measure_workload(web(), WorkloadEvidence(within=MINUTE)), name=name, **more)


@pytest.mark.parametrize(
    ("goal", "limit", "facts", "holds", "words"),
    [
        (Goal.REQUESTS_LOST, 0, {"requests_lost": 0.0}, True, "0 requests"),
        (Goal.REQUESTS_LOST, 1, {"requests_lost": 1.5}, False, "1.5 requests"),
        (Goal.REQUESTS_LOST, 20, {"requests_lost": 13.472}, True, "13.5 requests"),
        (Goal.REQUESTS_LOST, 0, {"requests_lost": 0.0167}, False, "0.017 requests"),
        (Goal.DOWN_FOR, 30, {"down": 30.0}, True, "30s"),
        (Goal.WRITES_LOST, 0, {"writes_lost": 1}, False, "1 write"),
        (Goal.ENDED_IN_TIME, 0, {"power_cut": 2}, False, "2 pods"),
        (Goal.ENDED_BY_ITSELF, 0, {}, True, "0 pods"),
        (Goal.ENDED_BY_ITSELF, 0, {"killed": 1}, False, "1 pod"),
        (Goal.ENDED_BY_ITSELF, 0, {"power_cut": 2}, False, "2 pods"),
        (Goal.ENDED_BY_ITSELF, 0, {"unconfirmed": 1}, False, "1 pod"),
        (Goal.RUNS, 0, {"serving": 4, "wanted": 4}, True, "4 of 4 pods"),
        (Goal.RUNS, 0, {"serving": 0, "wanted": 1}, False, "0 of 1 pod"),
        (Goal.STUCK, 0, {"serving": 3, "wanted": 4}, True, "3 of 4 pods"),
        (Goal.STUCK, 0, {"serving": 4, "wanted": 4}, False, "4 of 4 pods"),
    ],
)
def test_an_expectation_is_judged(goal, limit, facts, holds, words):
    facts = {"serving": 4, "wanted": 4} | facts
    found = check_expectation(
        Expectation(goal=goal, subject="web", limit=limit), [outcome_of(**facts), outcome_of("db")]
    )
    assert (found.holds, found.measured) == (holds, words)


def test_what_is_expected_of_all_must_hold_for_each():
    workloads = [outcome_of(serving=4, wanted=4, down=1.0), outcome_of("db", serving=2, wanted=3, down=9.0)]
    runs = check_expectation(Expectation(goal=Goal.RUNS), workloads)
    assert (runs.holds, runs.measured) == (False, "2 of 3 pods of db")
    assert check_expectation(Expectation(goal=Goal.DOWN_FOR, limit=5), workloads).measured == "9s"


def test_nothing_can_be_expected_of_who_is_not_there():
    with pytest.raises(InvalidInput, match=r"'shop': must be a workload of the scenario \(web\)"):
        check_expectation(Expectation(goal=Goal.RUNS, subject="shop"), [outcome_of()])


# -- writes ------------------------------------------------------------------------------------------------------------


def test_a_write_from_a_machine_that_the_volume_was_taken_from_is_found():
    def record(at, what, node):
        return VolumeEvent(at=at, what=what, node=node, volume="v")

    records = [
        record(1, VolumeEventType.ATTACHED, "old"),
        record(2, VolumeEventType.WROTE, "old"),
        record(3, VolumeEventType.ATTACHED, "new"),
        record(4, VolumeEventType.WROTE, "old"),
        record(4, VolumeEventType.WROTE, "new"),
        record(5, VolumeEventType.DETACHED, "old"),
        record(6, VolumeEventType.WROTE, "new"),
    ]
    assert stale_writes(records) == {(4, "old", "v")}


def test_a_volume_for_several_is_taken_from_nobody():
    attached = [
        VolumeEvent(at=1, what=VolumeEventType.ATTACHED, node=node, volume="v", shared=True) for node in ("a", "b")
    ]
    assert stale_writes([*attached, VolumeEvent(at=2, what=VolumeEventType.WROTE, node="a", volume="v")]) == set()


def test_writes_are_counted_from_time_0():
    attempts = [WriteAttempt(at, "a", "node-1", "v", "f", b"", acknowledged=at != 130) for at in (90, 110, 120, 130)]
    found = measure_workload(web(), WorkloadEvidence(within=MINUTE, attempts=attempts, lost=attempts[:2]))
    assert (found.writes, found.writes_refused, found.writes_lost) == (2, 1, 1)
