"""A container runtime that does not answer in the middle of a shutdown."""

import math

import pytest
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod
from support.runtimes.hanging_runtime import HangingRuntime

from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.graceful.shutdown.event_text import EventFormatter, needs_attention
from lastcall.graceful.shutdown.runtime_probe import SILENT_SECONDS
from lastcall.model.shutdown import (
    ContainerEnded,
    ContainerSignalled,
    PhaseEnd,
    PhaseEnded,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    RuntimeAnswered,
    RuntimeSilent,
    ShutdownMode,
    ShutdownStarted,
)
from lastcall.model.shutdown_fold import fold_events
from lastcall_lab.fakes.actor_runtime import ContainerScript

PLAN = phases((0, 10), (1000, 5), (2_000_000_000, 10))
PODS = [
    (pod("web", uid="web", grace=60), {"main": ContainerScript(after_term=3)}),
    (pod("db", uid="db", priority=1000), None),
    (pod("dns", uid="dns", priority=2_000_000_000), None),
]


def hangs(begin, end):
    async def until(shutdown, clock):
        await clock.sleep(begin)
        shutdown.runtime.hang()
        await clock.sleep(end - begin)
        shutdown.runtime.resume()

    return until


def record_of(shutdown):
    started = ShutdownStarted(
        at=0, id="x", node="n", boot_id="b", wall=0, how="poweroff", mode=ShutdownMode.ENFORCE, requested=25, granted=25,
        deadline=25, lock=True, phases=PLAN,
    )  # fmt: skip
    return fold_events([started, *shutdown.events])


@pytest.fixture(scope="module")
def shutdown():
    return Shutdown(PLAN, PODS, until=hangs(1, 17), runtime=HangingRuntime)


def test_the_phases_go_on_by_the_clock(shutdown):
    assert [e.at for e in shutdown.of(PhaseStarted)] == [0, pytest.approx(10), pytest.approx(15)]
    assert [e.end for e in shutdown.of(PhaseEnded)] == [PhaseEnd.RAN_OUT, PhaseEnd.RAN_OUT, PhaseEnd.DONE]
    assert shutdown.over <= 25


def test_an_empty_last_phase_does_not_wait_for_the_list_of_a_silent_runtime():
    shutdown = Shutdown(phases((0, 3), (2_000_000_000, 10)), PODS[:1], until=hangs(0.01, 30), runtime=HangingRuntime)
    assert [(e.at, e.end) for e in shutdown.of(PhaseEnded)] == [
        (pytest.approx(3), PhaseEnd.RAN_OUT),
        (pytest.approx(3), PhaseEnd.EMPTY),
    ]


def test_it_is_told_once_and_so_is_its_return(shutdown):
    assert [e.at for e in shutdown.of(RuntimeSilent)] == [pytest.approx(1.25 + SILENT_SECONDS, abs=1)]
    assert [e.at for e in shutdown.of(RuntimeAnswered)] == [pytest.approx(17)]
    texts = [note.text for note in record_of(shutdown).notes]
    assert texts[0] == "the container runtime has not answered for 2s: no answer"
    assert texts[1].startswith("the container runtime answers again, after 15.")
    [silent] = shutdown.of(RuntimeSilent)
    assert (EventFormatter().format_event(silent), needs_attention(silent)) == (texts[0], True)


def test_who_has_ended_by_itself_does_not_count_as_killed(shutdown):
    """The agent asked for SIGKILL, which nobody got."""
    assert [e.container for e in shutdown.of(ContainerSignalled) if (e.uid, e.signal) == ("web", "KILL")] == ["main"]
    assert shutdown.deliveries("KILL", "web") == []
    assert [e.outcome for e in shutdown.of(PodEnded) if e.uid == "web"] == [PodOutcome.UNCONFIRMED, PodOutcome.GRACEFUL]
    assert {found.name: found.outcome for found in record_of(shutdown).pods}["web"] is PodOutcome.GRACEFUL


def test_the_metric_says_so_while_it_lasts(shutdown):
    metrics, said = AgentMetrics(), []
    for event in shutdown.events:
        metrics.count_event(event)
        if isinstance(event, RuntimeSilent | RuntimeAnswered):
            said.append(b"lastcall_shutdown_runtime_answers 1.0" in metrics.render_text())
    assert said == [False, True]


def test_one_that_is_silent_for_a_moment_is_not_told():
    shutdown = Shutdown(PLAN, PODS, until=hangs(1, 2.5), runtime=HangingRuntime)
    assert shutdown.of(RuntimeSilent) == []


def test_one_that_is_away_is_told_by_what_was_heard_of_it():
    async def outage(shutdown, clock):
        await clock.sleep(1)
        shutdown.runtime.away = True
        await clock.sleep(5)
        shutdown.runtime.away = False

    shutdown = Shutdown(PLAN, [(pod("slow", hook=8), None)], until=outage)
    assert [e.why for e in shutdown.of(RuntimeSilent)] == ["the runtime is away"]
    assert len(shutdown.of(RuntimeAnswered)) == 1


def test_one_whose_sigkill_is_what_ended_it_counts_as_killed():
    shutdown = Shutdown(PLAN, [(pod("web", grace=3), {"main": ContainerScript(after_term=math.inf)})])
    assert [e.outcome for e in shutdown.of(PodEnded)] == [PodOutcome.KILLED]


def test_no_sigkill_is_told_of_a_container_that_has_ended():
    """Its time goes on for a thousand seconds more."""
    pods = [
        (pod("web", uid="web", grace=8), {"main": ContainerScript(after_term=1)}),
        (pod("slow"), {"main": ContainerScript(after_term=9)}),
    ]
    shutdown = Shutdown(PLAN, pods)
    assert [e.uid for e in shutdown.of(ContainerEnded)][0] == "web"
    assert [e for e in shutdown.of(ContainerSignalled) if e.signal == "KILL"] == []
