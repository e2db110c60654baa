"""A pod is announced before it gets SIGTERM, which waits for its traffic, but never at the cost of its phase."""

import pytest
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.graceful.shutdown.pod_ends import FIRST_STEP_SECONDS
from lastcall.graceful.shutdown.run import EXPECT_AFTER_SECONDS
from lastcall.model.shutdown import HookStarted, NoteWritten, PodEnded, ShutdownMode
from lastcall_lab.fakes.actor_runtime import ContainerScript

TWO = phases((0, 20), (2_000_000_000, 10))


def test_sigterm_waits_for_the_traffic_and_hooks_do_not():
    pods = [(pod("web", uid="web", hook=1), None), (pod("batch", uid="batch"), None)]
    shutdown = Shutdown(TWO, pods, traffic={"web": 1.5})
    assert [(d.at, d.uid) for d in shutdown.deliveries("TERM")] == [(0, "batch"), (1.5, "web")]
    assert [(event.at, event.uid) for event in shutdown.of(HookStarted)] == [(0, "web")]
    assert shutdown.node.begun[0][0] == 0


def test_traffic_that_does_not_end_costs_a_quarter_of_the_phase_at_most():
    shutdown = Shutdown(TWO, [(pod("web"), None)], traffic={"web": 1000})
    [term] = shutdown.deliveries("TERM")
    assert 4.5 < term.at <= 5.0


@pytest.mark.parametrize("grace", [0, 1])
def test_a_short_grace_period_is_not_used_up_by_traffic(grace):
    shutdown = Shutdown(TWO, [(pod("web", grace=grace), None)], traffic={"web": 1000})
    assert shutdown.deliveries("TERM")[0].at == grace


def test_each_pod_is_announced_when_its_phase_begins():
    shutdown = Shutdown(
        TWO, [(pod("web"), {"main": ContainerScript(after_term=3)}), (pod("dns", priority=2_000_000_000), None)]
    )
    assert [(at, name) for at, name, *_ in shutdown.node.begun] == [(0, "web"), (3, "dns")]
    assert shutdown.node.namespaces == {"default"}


def test_what_is_asked_about_the_pods_is_asked_while_the_kubelet_stops():
    shutdown = Shutdown(TWO, [(pod("web"), None)], slow=0.5)
    assert shutdown.node.whens("expect") == [EXPECT_AFTER_SECONDS, 0.5], "and after the kubelet's stop is asked for"


def test_notes_of_the_node_are_in_the_report():
    shutdown = Shutdown(TWO, [(pod("web"), None)], notes=["the object of default/web stays"])
    assert [event.text for event in shutdown.of(NoteWritten)] == ["the object of default/web stays"]


def test_nothing_is_announced_by_who_only_observes():
    shutdown = Shutdown(TWO, [(pod("web"), None)], mode=ShutdownMode.OBSERVE)
    assert shutdown.node.begun == []


@pytest.mark.parametrize(
    ("name", "hook", "ended"),
    [("web", None, []), ("deleted", None, ["deleted"]), ("web", 1, ["web"])],
    ids=["it may be left alone", "the server has its deletion", "its hook has begun"],
)
def test_a_pod_that_waits_for_its_traffic_when_the_shutdown_is_cancelled_is_left_alone_if_nothing_was_done(
    name, hook, ended
):
    async def cancel(shutdown, clock):
        await clock.sleep(0.5)
        shutdown.run.stop()

    shutdown = Shutdown(
        TWO, [(pod(name, uid=name, hook=hook), None)], traffic={name: 2.0}, spares=("web",), until=cancel
    )
    assert [d.uid for d in shutdown.deliveries("TERM")] == ended
    assert [event.uid for event in shutdown.of(PodEnded)] == ended


@pytest.mark.parametrize(("hook", "traffic", "term"), [(1, 0.6, 1.6), (4, 1000, 4.98), (6, 0.6, 6)])
def test_a_pod_that_gets_traffic_again_during_its_hook_waits_again_within_the_same_limit(hook, traffic, term):
    """Somebody starts the kubelet, which makes it ready."""

    async def serve_again(shutdown, clock):
        await clock.sleep(0.5)
        shutdown.node.traffic["web"] = traffic

    shutdown = Shutdown(TWO, [(pod("web", hook=hook), None)], traffic={}, until=serve_again)
    assert [d.at for d in shutdown.deliveries("TERM")] == [pytest.approx(term, abs=0.02)]


def test_the_other_pods_of_a_phase_hardly_wait_for_one_whose_traffic_has_to_turn_away():
    pods = [(pod(name, uid=name), None) for name in ("a", "b")]
    shutdown = Shutdown(phases((0, 20)), pods, traffic={"a": 0.5})
    sent = {delivery.uid: delivery.at for delivery in shutdown.deliveries("TERM")}
    assert sent == {"a": 0.5, "b": FIRST_STEP_SECONDS}
