"""The record of a shutdown: what its events add up to, and the object that is printed."""

import json
from datetime import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.agents import shutdown_records

from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.model.node_shutdown_export import to_node_shutdown
from lastcall.model.shutdown import (
    ContainerEnded,
    ContainerSignalled,
    HookStarted,
    LockReleased,
    MachineReturned,
    NoteWritten,
    PhaseEnd,
    PhaseEnded,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    PodUnmounted,
    ShutdownCancelled,
    ShutdownOutcome,
    ShutdownResumed,
    from_lines,
    to_line,
)
from lastcall.model.shutdown_fold import finalise_record, fold_events

SCRIPTS = ("dozen", "cancelled", "crowd", "observed", "hostile")


def folded(name):
    return fold_events(getattr(shutdown_records, name)())


def pod(record, name):
    return next(found for found in record.pods if found.name == name)


def test_the_state_is_true_at_every_step():
    events = shutdown_records.dozen()
    states = [fold_events(events[:count]).state.value for count in range(1, len(events) + 1)]
    assert list(dict.fromkeys(states)) == ["Announced", "Ending", "Ended"]
    released = next(number for number, event in enumerate(events) if isinstance(event, LockReleased))
    assert states[released - 1] == "Ended", "while the lock is held nobody can write afterwards"
    back = MachineReturned(at=12.0, boot_id="b2", wall=events[0].wall + 300)
    assert fold_events([*events, back]).state.value == "Returned"
    assert folded("cancelled").state.value == "Cancelled"


def test_the_pods_are_counted_as_they_end():
    assert fold_events(shutdown_records.dozen()[:1]).pod_counts == "0/0"
    assert folded("dozen").pod_counts == "11/12", "one is not known to have ended"


@pytest.mark.parametrize("count", [2, None])
def test_the_next_boot_dates_its_return_by_the_wall_clock(count):
    events = shutdown_records.dozen()[:count]
    after = [*events, MachineReturned(at=12.0, boot_id="b2", wall=events[0].wall + 300), NoteWritten(at=14.0, text="t")]
    record = fold_events(after)
    assert (record.returned, record.notes[-1].at) == (300, 302)
    assert record.outcome is (ShutdownOutcome.INTERRUPTED if count else ShutdownOutcome.COMPLETED)
    assert record.ended == fold_events(events).ended
    assert from_lines([to_line(event) for event in after]) == after


def test_a_clock_that_was_set_back_does_not_date_the_return_before_the_shutdown():
    events = shutdown_records.dozen()
    record = fold_events([*events, MachineReturned(at=12.0, boot_id="b2", wall=events[0].wall - 5000)])
    assert record.returned is not None
    assert record.returned >= record.released


def test_a_journal_without_stop_signals_is_read():
    """As the version before wrote it."""
    line = b'{"event":"Signalled","at":1.5,"uid":"u","container":"main","signal":"TERM"}\n'
    assert from_lines([line]) == [ContainerSignalled(at=1.5, uid="u", container="main", signal="TERM")]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_journal_brings_back_every_event(name):
    events = getattr(shutdown_records, name)()
    assert from_lines([to_line(event) for event in events]) == events


def test_a_completed_shutdown():
    record = folded("dozen")
    assert record.outcome is ShutdownOutcome.COMPLETED
    assert record.ended == record.released == pytest.approx(29.002)
    assert record.boottime == shutdown_records.BEGAN
    assert record.deadline == pytest.approx(45)
    assert [phase.end for phase in record.phases] == [PhaseEnd.RAN_OUT, PhaseEnd.DONE, PhaseEnd.DONE]
    assert [phase.seconds for phase in record.phases] == [20, 15, 10]
    assert len(record.pods) == 12
    queue, log_agent = pod(record, "worker-0").containers
    assert (queue.name, queue.exit_code, queue.hook_ok) == ("queue", 137, True)
    assert queue.hook_ended == queue.term == pytest.approx(14.2)
    assert (queue.kill, queue.ended) == (pytest.approx(19.7), pytest.approx(19.75))
    assert log_agent.kill is None
    assert pod(record, "cache-0").containers[0].hook_message == "exit code 1: save failed"


def test_cut_short_are_those_that_were_killed_with_less_than_they_asked_for():
    record = folded("dozen")
    assert {found.name for found in record.pods if found.was_cut_short} == {"worker-0", "nfs-reader-0"}


def test_a_hair_less_than_asked_for_is_not_cut_short():
    """A phase of 20 s has 19.997 s left for its pods when they begin to end."""
    script = shutdown_records.Script((0, 20))
    containers = {"app": {"term": 0.0, "kill": 19.9, "ended": 19.95}}
    script.pod("web-1", 0, 0.0, grace=19.997, asked=20, containers=containers, outcome=PodOutcome.KILLED)
    assert not fold_events(script.events()).pods[0].was_cut_short


def test_a_cancelled_shutdown_and_what_ended_after_it():
    events = shutdown_records.cancelled()
    at = events[-1].at + 1
    uid = "uid-web-2"
    events += [
        ContainerEnded(at=at, uid=uid, container="nginx", exit_code=0),
        PodEnded(at=at, uid=uid, outcome=PodOutcome.GRACEFUL),
    ]
    record = fold_events(events)
    assert record.outcome is ShutdownOutcome.CANCELLED
    assert record.ended == pytest.approx(3.2)
    assert pod(record, "web-2").ended == pytest.approx(4.2)
    assert record.phases[1].started is None


def test_released_before_all_phases_are_over_is_not_completed():
    script = shutdown_records.Script((0, 20), (shutdown_records.CRITICAL, 10))
    script.phase(0, 0.0, 1.0, seconds=20)
    script.add(LockReleased, 2.0, why="the time is over")
    record = fold_events(script.events())
    assert record.outcome is ShutdownOutcome.RUNNING
    assert record.released == pytest.approx(2)
    assert finalise_record(record).outcome is ShutdownOutcome.INTERRUPTED


def test_a_journal_that_breaks_off_is_running_until_nobody_can_go_on_with_it():
    events = shutdown_records.dozen()[:20]
    record = fold_events(events)
    assert record.outcome is ShutdownOutcome.RUNNING
    assert record.ended == pytest.approx(events[-1].at - shutdown_records.BEGAN)
    assert finalise_record(record).outcome is ShutdownOutcome.INTERRUPTED


@pytest.mark.parametrize("name", ["dozen", "cancelled"])
def test_what_is_over_stays_as_it_is(name):
    assert finalise_record(folded(name)) == folded(name)


@pytest.mark.parametrize("events", [[], [NoteWritten(at=1.0, text="x")]])
def test_a_journal_begins_with_its_start(events):
    with pytest.raises(ValueError, match="begins with the event Started"):
        fold_events(events)


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_told_twice_counts_as_it_was_told_first(name):
    """An agent that was restarted after any event may tell again all that it had told."""
    events = getattr(shutdown_records, name)()
    again = [
        msgspec.structs.replace(event, at=event.at + 500)
        for event in events
        if not isinstance(event, (NoteWritten, ShutdownResumed, LockReleased, ShutdownCancelled))
    ]
    twice, once = fold_events([*events, *again]), fold_events(events)
    assert twice.pods == once.pods
    assert twice.phases == once.phases
    assert (twice.outcome, twice.released) == (once.outcome, once.released)


def test_a_phase_and_a_pod_keep_their_first_start_and_a_signal_its_first_moment():
    start, phase, begun, *_ = shutdown_records.dozen()
    assert (type(phase), type(begun)) == (PhaseStarted, PodStarted)
    uid = begun.uid
    term = ContainerSignalled(at=shutdown_records.BEGAN + 1, uid=uid, container=begun.containers[0], signal="TERM")
    later = [msgspec.structs.replace(event, at=event.at + 9) for event in (phase, begun, term)]
    record = fold_events(
        [start, phase, begun, term, ShutdownResumed(at=shutdown_records.BEGAN + 8, lock=False), *later]
    )
    assert record.phases[0].started == pytest.approx(0.004)
    assert record.pods[0].started == pytest.approx(0.006)
    assert record.pods[0].containers[0].term == pytest.approx(1)
    assert "the lock was lost" in record.notes[0].text


@pytest.mark.parametrize(("runs", "begun"), [(("a", "b"), 9.0), (("a", "a"), 3.0), (("", "b"), 3.0)])
def test_a_container_that_replaces_one_whose_end_nobody_saw_has_a_record_of_its_own(runs, begun):
    started, phase, web, *_ = shutdown_records.dozen()
    terms = [
        ContainerSignalled(at=started.at + at, uid=web.uid, container="main", signal="TERM", runtime_id=run)
        for at, run in zip((3.0, 9.0), runs, strict=True)
    ]
    [main] = [one for one in fold_events([started, phase, web, *terms]).pods[0].containers if one.name == "main"]
    assert (main.term, main.runtime_id) == (begun, runs[0] if begun == 3.0 and runs[0] else runs[1])


def test_an_unconfirmed_pod_may_turn_out_to_have_ended():
    events = shutdown_records.dozen()
    late = PodEnded(at=events[-1].at + 1, uid="uid-nfs-reader-0", outcome=PodOutcome.KILLED)
    assert pod(fold_events(events), "nfs-reader-0").outcome is PodOutcome.UNCONFIRMED
    assert pod(fold_events([*events, late]), "nfs-reader-0").outcome is PodOutcome.KILLED
    back = PodEnded(at=late.at + 1, uid="uid-nfs-reader-0", outcome=PodOutcome.UNCONFIRMED)
    assert pod(fold_events([*events, late, back]), "nfs-reader-0").outcome is PodOutcome.KILLED


def test_events_of_what_was_never_started_are_passed_over():
    events = shutdown_records.cancelled()
    strange = [
        HookStarted(at=events[0].at + 1, uid="nobody", container="x"),
        PodEnded(at=events[0].at + 1, uid="nobody", outcome=PodOutcome.GRACEFUL),
        PhaseStarted(at=events[0].at + 1, index=7, seconds=1),
        PhaseEnded(at=events[0].at + 1, index=-1, end=PhaseEnd.DONE),
    ]
    assert fold_events([*events, *strange]) == fold_events(events)


@given(st.sampled_from(SCRIPTS), st.data())
def test_a_journal_that_breaks_off_anywhere_is_a_record_whose_times_are_in_order(name, data):
    events = getattr(shutdown_records, name)()
    record = fold_events(events[: data.draw(st.integers(1, len(events)))])
    for phase in record.phases:
        assert phase.ended is None or (phase.started is not None and phase.started <= phase.ended)
    for found in record.pods:
        assert found.ended is None or found.started <= found.ended
        for container in found.containers:
            times = [container.hook_started, container.hook_ended, container.term, container.kill, container.ended]
            known = [time for time in times if time is not None]
            assert known == sorted(known)


# -- NodeShutdown ------------------------------------------------------------------------------------------------------


def test_the_object_is_what_an_administrator_expects():
    shown = to_node_shutdown(folded("dozen"))
    assert (shown["apiVersion"], shown["kind"]) == ("lastcall.dev/v1alpha1", "NodeShutdown")
    assert shown["metadata"] == {"name": "20261121t120704z-3f1c"}
    assert shown["spec"] == {
        "nodeName": "worker-3",
        "bootID": shutdown_records.BOOT,
        "how": "poweroff",
        "announcedBy": ["Logind"],
        "mode": "Enforce",
        "requestedSeconds": 60,
        "grantedSeconds": 45,
        "phases": [
            {"priority": 0, "seconds": 20},
            {"priority": 100_000, "seconds": 15},
            {"priority": 2_000_000_000, "seconds": 10},
        ],
    }
    status = shown["status"]
    assert status["outcome"] == "Completed"
    assert status["startTime"] == "2026-11-21T12:07:04.500000Z"
    assert status["endTime"] == status["releasedTime"] == "2026-11-21T12:07:33.502000Z"
    assert status["deadlineTime"] == "2026-11-21T12:07:49.500000Z"
    worker = next(found for found in status["pods"] if found["name"] == "worker-0")
    assert worker == {
        "namespace": "shop",
        "name": "worker-0",
        "uid": "uid-worker-0",
        "priority": 0,
        "phaseIndex": 0,
        "terminationGracePeriodSeconds": 120,
        "grantedSeconds": 20,
        "startTime": "2026-11-21T12:07:04.506000Z",
        "endTime": "2026-11-21T12:07:24.300000Z",
        "outcome": "Killed",
        "cutShort": True,
        "containers": [
            {
                "name": "queue",
                "preStop": {
                    "startTime": "2026-11-21T12:07:04.506000Z",
                    "endTime": "2026-11-21T12:07:18.700000Z",
                    "succeeded": True,
                },
                "sigtermTime": "2026-11-21T12:07:18.700000Z",
                "sigkillTime": "2026-11-21T12:07:24.200000Z",
                "endTime": "2026-11-21T12:07:24.250000Z",
                "exitCode": 137,
            },
            {
                "name": "log-agent",
                "sigtermTime": "2026-11-21T12:07:24.260000Z",
                "endTime": "2026-11-21T12:07:24.300000Z",
                "exitCode": 0,
            },
        ],
    }


def test_when_the_volumes_of_a_pod_were_unmounted():
    events = shutdown_records.dozen()
    [first, *others] = fold_events(events).pods
    record = fold_events(
        [*events, PodUnmounted(at=events[0].at + 9.5, uid=first.uid), PodUnmounted(at=0, uid="unknown")]
    )
    assert record.pods == (msgspec.structs.replace(first, unmounted=9.5), *others)
    shown = to_node_shutdown(record)["status"]["pods"]
    assert [one.get("unmountedTime", "") for one in shown] == ["2026-11-21T12:07:14.000000Z"] + [""] * len(others)


def test_what_is_not_known_is_left_out():
    shown = to_node_shutdown(fold_events(shutdown_records.cancelled()[:-2]))
    assert "grantedSeconds" not in shown["spec"]
    assert shown["status"]["outcome"] == "Running"
    assert "endTime" not in shown["status"]
    assert "releasedTime" not in shown["status"]
    assert "null" not in json.dumps(shown)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_object_is_plain_json_with_times_that_can_be_read(name):
    def walk(value):
        for key, inner in value.items() if isinstance(value, dict) else ():
            if key.endswith("Time") or key == "time":
                assert datetime.fromisoformat(inner).tzinfo is not None
            walk(inner)
        for inner in value if isinstance(value, list) else ():
            walk(inner)

    walk(json.loads(json.dumps(to_node_shutdown(folded(name)), allow_nan=False)))


def test_a_phase_that_is_shortened_cuts_the_grace_of_its_pods():
    script = shutdown_records.Script((0, 20), (shutdown_records.CRITICAL, 10))
    script.add(PhaseStarted, 0.0, index=0, seconds=20)
    for name, at in (("web-1", 0.0), ("web-2", 1.0)):
        script.add(
            PodStarted,
            at,
            uid=name,
            namespace="shop",
            name=name,
            priority=0,
            phase=0,
            grace=8,
            asked=8,
            containers=("app",),
        )
    script.add(PodEnded, 0.5, uid="web-1", outcome=PodOutcome.GRACEFUL)
    script.add(PhaseShortened, 2.0, index=0, seconds=5)
    script.add(PodEnded, 5.0, uid="web-2", outcome=PodOutcome.KILLED)
    record = fold_events(script.events())
    assert (record.phases[0].seconds, record.phases[0].given) == (20, 5)
    assert [(found.name, found.grace, found.was_cut_short) for found in record.pods] == [
        ("web-1", 8, False),
        ("web-2", 4, True),
    ]
    metrics = AgentMetrics()
    for event in script.events():
        metrics.count_event(event)
    assert b"lastcall_shutdown_pods_cut_short_total 1.0" in metrics.render_text()
