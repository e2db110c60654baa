"""SIGTERM is sent when the runtime has a turn for it, and is recorded then."""

from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.model.shutdown import ContainerSignalled, PodEnded
from lastcall_lab.fakes.actor_runtime import ActorRuntime

ONE = phases((0, 20))


class Busy(ActorRuntime):
    """Has a turn each tenth of a second."""

    turns = 0

    def reserve_stop(self):
        self.turns += 1
        return (self.turns - 1) / 10


def test_each_sigterm_waits_for_its_turn_and_is_recorded_when_it_is_sent():
    shutdown = Shutdown(ONE, [(pod(name, uid=name), None) for name in "abc"], runtime=Busy)
    assert [(round(d.at, 3), d.uid) for d in shutdown.deliveries("TERM")] == [(0, "a"), (0.1, "b"), (0.2, "c")]
    assert [round(event.at, 3) for event in shutdown.of(ContainerSignalled)] == [0, 0.1, 0.2]


def test_a_shutdown_that_is_cancelled_before_the_turn_leaves_the_pod_alone():
    """Its traffic is withdrawn, and nothing was done that a cancel does not take back."""

    async def cancel(shutdown, clock):
        await clock.sleep(1.15)
        shutdown.run.stop()

    names = ("a", "b", "c")
    shutdown = Shutdown(
        ONE,
        [(pod(name, uid=name), None) for name in names],
        traffic=dict.fromkeys(names, 1.0),
        spares=names,
        until=cancel,
        runtime=Busy,
    )
    assert [d.uid for d in shutdown.deliveries("TERM")] == ["a", "b"]
    assert [event.uid for event in shutdown.of(PodEnded)] == ["a", "b"]
