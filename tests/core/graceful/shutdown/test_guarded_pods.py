"""A guarded pod is not asked to end before its application is ready; but the deadline wins."""

import pytest
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.model.shutdown import ApplicationWaited, HookStarted, PodStarted, ShutdownMode
from lastcall_lab.fakes.actor_runtime import ContainerScript

TWO = phases((0, 40), (2_000_000_000, 10))


def test_nothing_is_done_to_a_guarded_pod_before_its_application_is_ready():
    pods = [(pod("db", uid="db", hook=1), None), (pod("web", uid="web"), None)]
    shutdown = Shutdown(TWO, pods, ready_at={"db": 5})
    assert [(round(d.at), d.uid) for d in shutdown.deliveries("TERM")] == [(0, "web"), (6, "db")]
    assert [round(event.at) for event in shutdown.of(HookStarted)] == [5]
    assert {name: round(at) for at, name, *_ in reversed(shutdown.node.begun)} == {"web": 0, "db": 5}
    assert {event.name: (round(event.at), event.grace) for event in shutdown.of(PodStarted)} == {
        "web": (0, 30.0),
        "db": (5, 30.0),
    }
    [waited] = shutdown.of(ApplicationWaited)
    assert (waited.uid, round(waited.seconds), waited.is_ready, waited.message) == ("db", 5, True, "")


@pytest.mark.parametrize(("grace", "term"), [(30, 20), (10, 30)])
def test_the_deadline_wins_and_the_pod_keeps_its_grace_period_or_half_of_its_time(grace, term):
    shutdown = Shutdown(TWO, [(pod("db", grace=grace), {"main": ContainerScript(after_term=3)})], ready_at={"db": 1000})
    [signal] = shutdown.deliveries("TERM")
    assert signal.at == pytest.approx(term, abs=0.5)
    assert not shutdown.deliveries("KILL")
    [waited] = shutdown.of(ApplicationWaited)
    assert (waited.is_ready, waited.message) == (False, "2 of 3 members")


def test_a_phase_that_is_shortened_shortens_the_wait():
    async def bring_forward(shutdown, clock):
        await clock.sleep(2)
        shutdown.run.cap_deadline(12)

    shutdown = Shutdown(TWO, [(pod("db"), None)], ready_at={"db": 1000}, until=bring_forward)
    [signal] = shutdown.deliveries("TERM")
    assert 2 < signal.at <= 6.1


def test_a_cancelled_shutdown_leaves_a_pod_alone_that_waits_for_its_application():
    async def cancel(shutdown, clock):
        await clock.sleep(2)
        shutdown.run.stop()

    shutdown = Shutdown(TWO, [(pod("db"), None)], ready_at={"db": 5}, until=cancel)
    assert shutdown.deliveries("TERM") == []
    assert shutdown.of(PodStarted) == []
    assert shutdown.node.begun == []


def test_a_wait_that_fails_does_not_keep_the_pod_from_its_end():
    shutdown = Shutdown(TWO, [(pod("db", uid="db", hook=1), None)], unreadable={"db"})
    assert [(round(d.at), d.uid) for d in shutdown.deliveries("TERM")] == [(1, "db")]
    [waited] = shutdown.of(ApplicationWaited)
    assert (waited.uid, waited.is_ready, waited.message) == ("db", False, "ValueError: no number: 'x'")


def test_who_only_observes_waits_for_nothing():
    shutdown = Shutdown(TWO, [(pod("db"), None)], ready_at={"db": 5}, mode=ShutdownMode.OBSERVE)
    assert shutdown.of(ApplicationWaited) == []
    assert shutdown.over == 0
