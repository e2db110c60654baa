"""A drill decides as a shutdown does, and ends nothing, whatever it is asked for."""

import inspect

import pytest
from support.agents.virtual_parts import pod

from lastcall.errors import RefusedForSafety, Unavailable
from lastcall.graceful import config as configuration
from lastcall.graceful.drill.read_only import NoJournals, ReadOnlyNode, ReadOnlyRuntime
from lastcall.graceful.drill.rehearsal import rehearse_shutdown
from lastcall.graceful.shutdown.manager import NodeShutdownManager
from lastcall.model.shutdown import NoteWritten, PhaseEnd, PodOutcome, ShutdownMode, ShutdownOutcome, ShutdownState
from lastcall.ports.node import Journals, NodeFace, PodRuntime
from lastcall_lab import virtual
from lastcall_lab.fakes.actor_runtime import ActorRuntime

CONFIG = configuration.parse_config(
    b"""\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 20}
- {priority: 1000, shutdownGracePeriodSeconds: 5}
- {priority: 2000000000, shutdownGracePeriodSeconds: 10}
""",
    "agent.yaml",
)
PODS = (pod("web", grace=30), pod("db", priority=2_000_000_000, grace=5))


def rehearse(*, away=False, **options):
    """The record, what was delivered to the containers, and how long it took."""

    async def main():
        clock = virtual.VirtualClock()
        runtime = ActorRuntime(clock)
        for one in PODS:
            runtime.add(one)
        runtime.away = away
        known = {"node_name": "n1", "boot_id": "b", "granted": 100.0, "lock": True}
        record = await rehearse_shutdown(CONFIG, ReadOnlyRuntime(runtime), clock, **known | options)
        took = clock.boottime()
        await clock.sleep(1000)
        return record, runtime.deliveries, took

    return virtual.run(main())


def test_the_agents_own_order_and_times():
    record, deliveries, took = rehearse()
    assert CONFIG.mode is ShutdownMode.ENFORCE
    assert [(one.name, one.phase, one.grace, one.outcome) for one in record.pods] == [
        ("web", 0, 20.0, PodOutcome.OBSERVED),
        ("db", 2, 5.0, PodOutcome.OBSERVED),
    ]
    assert [phase.end for phase in record.phases] == [PhaseEnd.DONE, PhaseEnd.EMPTY, PhaseEnd.DONE]
    assert (record.mode, record.outcome, record.state) == (
        ShutdownMode.OBSERVE,
        ShutdownOutcome.COMPLETED,
        ShutdownState.ENDED,
    )
    assert (record.lock, record.notes, deliveries) == (True, (), [])
    assert took < 10


def test_less_time_than_the_phases_ask_for():
    record, deliveries, _ = rehearse(granted=16.0, lock=False)
    assert [round(pod.grace) for pod in record.pods] == [6, 5]
    assert (record.granted, record.lock, deliveries) == (16.0, False, [])


def test_without_a_limit():
    assert rehearse(granted=float("inf"))[0].granted is None
    assert rehearse(granted=None)[0].granted is None


def test_a_runtime_that_does_not_answer_ends_the_drill():
    with pytest.raises(Unavailable, match="the container runtime has not listed its pods within 10 s"):
        rehearse(away=True)


def test_even_a_shutdown_in_earnest_ends_nothing_through_the_parts_of_a_drill():
    """The second safeguard, should a drill ever not observe."""

    async def main():
        clock, events = virtual.VirtualClock(), []
        runtime = ActorRuntime(clock)
        for one in PODS:
            runtime.add(one)
        manager = NodeShutdownManager(
            node_name="n1",
            boot_id="b",
            runtime=ReadOnlyRuntime(runtime),
            node=ReadOnlyNode(),
            journals=NoJournals(),
            clock=clock,
            listeners=[events.append],
            wake=lambda: None,
        )
        await manager.begin(CONFIG, granted=100.0, how="", lock=True)
        await clock.sleep(1000)
        await manager.close()
        return runtime.deliveries, [event.text for event in events if isinstance(event, NoteWritten)]

    deliveries, notes = virtual.run(main())
    assert deliveries == []
    assert "RefusedForSafety: a drill must not" in notes[0]


READS = {"list_pods", "refresh_pods", "reread_pod", "ping", "kill_seconds", "take_notes"}


@pytest.mark.parametrize("name", [name for name in vars(PodRuntime) if not name.startswith("_")])
async def test_the_runtime_is_only_read(name):
    await is_refused(ReadOnlyRuntime(None), name, PodRuntime)


@pytest.mark.parametrize("name", [name for name in vars(NodeFace) if not name.startswith("_")])
async def test_the_node_is_only_read(name):
    await is_refused(ReadOnlyNode(), name, NodeFace)


async def is_refused(part, name, port):
    if name in READS:
        return
    arguments = list(inspect.signature(getattr(port, name)).parameters)[1:]

    async def call():
        if waiting := getattr(part, name)(*arguments):
            await waiting

    with pytest.raises(RefusedForSafety, match="a drill must not"):
        await call()


async def test_nothing_is_written():
    journals = NoJournals()
    assert journals.latest() is None
    for journal in (journals.create("a"), journals.reopen("a")):
        journal.append(b"{}")
        await journal.sync()
    await journals.write_kubelet_state(1.0, 2.0)
    assert set(vars(Journals)) - set(dir(journals)) <= {name for name in vars(Journals) if name.startswith("_")}
