"""Volumes that are slow to unmount hold up their pod's phase, and the machine not beyond the phases."""

import math

import pytest
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.model.shutdown import PhaseEnd, PhaseEnded, PodUnmounted
from lastcall_lab.fakes.actor_runtime import ContainerScript

TWO = phases((0, 20), (2_000_000_000, 10))
CRITICAL = 2_000_000_000


def test_the_next_phase_begins_when_the_volumes_are_unmounted():
    pods = [(pod("db", uid="db"), None), (pod("driver", uid="driver", priority=CRITICAL), None)]
    shutdown = Shutdown(TWO, pods, slow_end={"db": 3.0}, unmounts=("db",))
    assert [d.at for d in shutdown.deliveries("TERM", "driver")] == [3.0]
    assert [(event.at, event.uid) for event in shutdown.of(PodUnmounted)] == [(3.0, "db")]


def test_volumes_that_hang_cost_their_phase_and_no_more():
    pods = [(pod("db", uid="db"), None), (pod("driver", uid="driver", priority=CRITICAL), None)]
    shutdown = Shutdown(TWO, pods, slow_end={"db": math.inf})
    assert [d.at for d in shutdown.deliveries("TERM", "driver")] == [20.0]
    assert [event.end for event in shutdown.of(PhaseEnded)] == [PhaseEnd.DONE, PhaseEnd.DONE]
    assert shutdown.over < 21


def test_the_machine_does_not_wait_until_the_deadline_for_volumes():
    pods = [(pod("db", uid="db", priority=CRITICAL), None)]
    shutdown = Shutdown(TWO, pods, slow_end={"db": math.inf})
    assert shutdown.over == pytest.approx(10.0)
    assert shutdown.deadline == 30.0


def test_volumes_that_are_unmounted_after_their_phase_count():
    pods = [
        (pod("db", uid="db"), None),
        (pod("dns", uid="dns", priority=CRITICAL), {"main": ContainerScript(after_term=5)}),
    ]
    shutdown = Shutdown(TWO, pods, slow_end={"db": 22.0}, unmounts=("db",))
    assert [(event.at, event.uid) for event in shutdown.of(PodUnmounted)] == [(22.0, "db")]
