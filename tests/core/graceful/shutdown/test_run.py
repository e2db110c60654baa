"""One shutdown in virtual time, judged by what really reached the containers."""

import math

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.graceful.shutdown.run import RELIST_SECONDS
from lastcall.model.pods import Container, Lifecycle
from lastcall.model.shutdown import (
    ContainerSignalled,
    HookEnded,
    NoteWritten,
    PhaseEnd,
    PhaseEnded,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    PodUnmounted,
    ShutdownMode,
)
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript

TWO = phases((0, 20), (2_000_000_000, 10))


def test_lowest_priority_first_and_each_phase_as_soon_as_it_can():
    shutdown = Shutdown(
        TWO,
        [
            (pod("web", uid="web"), {"main": ContainerScript(after_term=3)}),
            (pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=1)}),
        ],
    )
    assert [(d.at, d.uid) for d in shutdown.deliveries("TERM")] == [(0, "web"), (3, "dns")]
    assert shutdown.over == 4
    assert shutdown.deliveries("KILL") == []
    assert [(e.index, e.end) for e in shutdown.of(PhaseEnded)] == [(0, PhaseEnd.DONE), (1, PhaseEnd.DONE)]


@pytest.mark.parametrize(("configured", "told"), [("SIGUSR1", "SIGUSR1"), ("SIGTERM", ""), ("", "")])
def test_the_configured_stop_signal_is_recorded_and_the_runtime_sends_it(configured, told):
    web = pod("web")
    main = Container(name="main", lifecycle=Lifecycle(stop_signal=configured))
    web = replace(web, spec=replace(web.spec, containers=(main,)))
    shutdown = Shutdown(TWO, [(web, None)])
    assert [(e.signal, e.stop_signal) for e in shutdown.of(ContainerSignalled)] == [("TERM", told)]
    assert len(shutdown.deliveries("TERM")) == 1, "StopContainer is called as ever"


@pytest.mark.parametrize(("deletion", "killed"), [(None, 10), (5, 5), (15, 10)])
def test_a_deletion_under_way_shortens_the_grace_period(deletion, killed):
    web = pod("web", grace=10)
    web = replace(web, metadata=replace(web.metadata, deletion_grace_period_seconds=deletion))
    shutdown = Shutdown(TWO, [(web, {"main": ContainerScript(after_term=math.inf)})])
    assert [d.at for d in shutdown.deliveries("KILL")] == [killed]
    assert [(e.grace, e.asked) for e in shutdown.of(PodStarted)] == [(killed, killed)]


class KillingRuntime(ActorRuntime):
    """Its answer to a stop that ends in a kill comes before the alarm of who asked, as on a busy machine."""

    code = 137

    async def stop_container(self, container_id, grace):
        await self._clock.sleep(grace)
        await self.kill_container(container_id)
        return self.code


class LateRuntime(KillingRuntime):
    code = 0


@pytest.mark.parametrize(
    ("runtime", "signals", "outcome"),
    [(KillingRuntime, ["TERM", "KILL"], PodOutcome.KILLED), (LateRuntime, ["TERM"], PodOutcome.GRACEFUL)],
)
def test_a_kill_by_the_runtime_itself_is_recorded_as_a_kill(runtime, signals, outcome):
    shutdown = Shutdown(TWO, [(pod("web", grace=10), None)], runtime=runtime)
    assert [e.signal for e in shutdown.of(ContainerSignalled)] == signals
    assert [e.outcome for e in shutdown.of(PodEnded)] == [outcome]


def test_the_node_is_not_ready_before_the_first_signal():
    shutdown = Shutdown(TWO, [(pod("web"), None)], slow=0.5)
    assert shutdown.node.whens("refuse") == [0]
    assert shutdown.node.whens("not ready") == [0.5]
    assert shutdown.deliveries("TERM")[0].at == 0.5


def test_the_first_signal_waits_for_the_journals_lines_of_no_other_pod():
    shutdown = Shutdown(phases((0, 20)), [(pod(name, uid=name), None) for name in ("a", "b", "c")])
    told = [(type(event), event.uid) for event in shutdown.events if isinstance(event, PodStarted | ContainerSignalled)]
    assert told[:3] == [(PodStarted, "a"), (ContainerSignalled, "a"), (PodStarted, "b")]
    assert [(sent.at, sent.uid) for sent in shutdown.deliveries("TERM")] == [(0, "a"), (0, "b"), (0, "c")]


def test_a_node_that_cannot_be_told_holds_nobody_up_for_long():
    shutdown = Shutdown(TWO, [(pod("web"), None)], slow=100)
    assert shutdown.deliveries("TERM")[0].at == 2.0


def test_whose_volumes_are_unmounted_is_told_after_its_end():
    shutdown = Shutdown(
        TWO, [(pod("db", uid="db-uid"), {"main": ContainerScript(after_term=1)}), (pod("web"), None)], unmounts=("db",)
    )
    assert [(event.uid, event.at) for event in shutdown.of(PodUnmounted)] == [("db-uid", 1)]


def test_the_last_word_comes_after_the_last_pod_and_before_the_machine_may_go():
    shutdown = Shutdown(TWO, [(pod("web"), {"main": ContainerScript(after_term=3)})], slow_word=1)
    assert shutdown.node.told[-2:] == [(3, "ended web"), (4, "last word")]
    assert shutdown.over == 4


def test_a_last_word_that_nobody_hears_holds_nobody_up_for_long():
    shutdown = Shutdown(TWO, [(pod("web"), {"main": ContainerScript(after_term=3)})], slow_word=100)
    assert shutdown.over == 5


def test_a_last_word_never_reaches_beyond_the_deadline():
    shutdown = Shutdown(phases((0, 10)), [(pod("web"), {"main": ContainerScript(after_term=9)})], slow_word=100)
    assert shutdown.over == shutdown.deadline == 10


def test_a_straggler_is_killed_within_its_phase_and_the_next_phase_waits_for_that():
    shutdown = Shutdown(
        TWO,
        [
            (pod("stubborn", uid="s", grace=60), {"main": ContainerScript(after_term=math.inf, after_kill=0.05)}),
            (pod("dns", uid="dns", priority=2_000_000_000), None),
        ],
    )
    assert [d.at for d in shutdown.deliveries("KILL")] == [pytest.approx(19.9)]
    assert shutdown.deliveries("TERM", "dns")[0].at == pytest.approx(19.95)
    assert shutdown.of(PhaseEnded)[0].end is PhaseEnd.DONE
    assert shutdown.of(PodEnded)[0].outcome is PodOutcome.KILLED


def test_grace_is_the_smaller_of_the_pods_and_the_phases():
    shutdown = Shutdown(TWO, [(pod("short", grace=5), {"main": ContainerScript(after_term=math.inf)})])
    assert [d.at for d in shutdown.deliveries("KILL")] == [5]
    assert shutdown.of(PodStarted)[0].grace == 5


def test_a_pod_that_names_no_grace_has_its_phases():
    shutdown = Shutdown(TWO, [(pod("silent", grace=None), {"main": ContainerScript(after_term=12)})])
    assert shutdown.deliveries("KILL") == []
    assert shutdown.over == 12


def test_sigterm_follows_the_hook():
    shutdown = Shutdown(TWO, [(pod("hooked", hook=7), {"main": ContainerScript(after_term=2)})])
    assert [(d.at, d.what) for d in shutdown.runtime.deliveries] == [
        (0, "hook"),
        (7, "hook over"),
        (7, "TERM"),
        (9, "exit"),
    ]


def test_a_hook_that_outlives_the_grace_gets_sigterm_and_two_seconds_more():
    shutdown = Shutdown(TWO, [(pod("slow", grace=5, hook=60), {"main": ContainerScript(after_term=math.inf)})])
    assert [(d.at, d.what) for d in shutdown.runtime.deliveries] == [
        (0, "hook"),
        (5, "hook over"),
        (5, "TERM"),
        (7, "KILL"),
        (7, "exit"),
    ]


def test_two_seconds_more_never_reach_beyond_the_phase():
    shutdown = Shutdown(
        phases((0, 6)), [(pod("slow", grace=5, hook=60), {"main": ContainerScript(after_term=math.inf)})]
    )
    assert [d.at for d in shutdown.deliveries("KILL")] == [pytest.approx(5.9)]
    assert [d.at for d in shutdown.deliveries("TERM")] == [pytest.approx(3.9)], "SIGTERM is so much earlier instead"


def test_a_hook_that_would_take_the_whole_phase_leaves_two_seconds_of_it():
    shutdown = Shutdown(phases((0, 20)), [(pod("db", grace=30, hook=60), {"main": ContainerScript(after_term=1.5)})])
    assert [(d.at, d.what) for d in shutdown.runtime.deliveries] == [
        (0, "hook"),
        (pytest.approx(17.9), "hook over"),
        (pytest.approx(17.9), "TERM"),
        (pytest.approx(19.4), "exit"),
    ]


def test_a_sidecar_behind_a_main_that_will_not_end_has_two_seconds_of_the_phase():
    mesh = pod("mesh", grace=30, sidecars=("proxy",))
    behaviours = {"main": ContainerScript(after_term=math.inf), "proxy": ContainerScript(after_term=1.5)}
    shutdown = Shutdown(phases((0, 20)), [(mesh, behaviours)])
    assert [(d.at, d.container) for d in shutdown.deliveries("TERM")] == [(0, "main"), (pytest.approx(17.9), "proxy")]
    assert [(d.at, d.container) for d in shutdown.deliveries("KILL")] == [(pytest.approx(19.9), "main")]


def test_of_a_short_phase_sigterm_and_the_hook_have_one_half_each():
    shutdown = Shutdown(phases((0, 3)), [(pod("db", hook=60), {"main": ContainerScript(after_term=math.inf)})])
    assert [d.at for d in shutdown.deliveries("hook over")] == [pytest.approx(1.45)]
    assert [d.at for d in shutdown.deliveries("KILL")] == [pytest.approx(2.9)]


def test_sidecars_end_after_the_main_containers_in_reverse():
    shutdown = Shutdown(
        TWO,
        [
            (
                pod("mesh", containers=("a", "b"), sidecars=("first", "second")),
                {
                    "a": ContainerScript(after_term=1),
                    "b": ContainerScript(after_term=3),
                    "second": ContainerScript(after_term=2),
                },
            )
        ],
    )
    assert [(d.at, d.container) for d in shutdown.deliveries("TERM")] == [
        (0, "a"),
        (0, "b"),
        (3, "second"),
        (5, "first"),
    ]


def test_sidecars_do_not_wait_beyond_the_grace():
    shutdown = Shutdown(
        TWO, [(pod("mesh", grace=4, sidecars=("proxy",)), {"main": ContainerScript(after_term=math.inf)})]
    )
    assert shutdown.deliveries("KILL")[0].at == 4
    assert [d.at for d in shutdown.deliveries("TERM") if d.container == "proxy"] == [4]


def test_a_phase_without_pods_is_skipped_at_once():
    shutdown = Shutdown(phases((0, 60), (1000, 60), (5000, 60)), [(pod("only", priority=5000), None)])
    assert shutdown.deliveries("TERM")[0].at == 0
    assert [e.end for e in shutdown.of(PhaseEnded)] == [PhaseEnd.EMPTY, PhaseEnd.EMPTY, PhaseEnd.DONE]


def test_what_cannot_be_killed_is_given_up_when_its_phase_is_over():
    stuck = ContainerScript(after_term=math.inf, after_kill=math.inf)
    shutdown = Shutdown(
        TWO, [(pod("stuck", uid="x"), {"main": stuck}), (pod("dns", uid="dns", priority=2_000_000_000), None)]
    )
    assert shutdown.of(PhaseEnded)[0].end is PhaseEnd.RAN_OUT
    assert shutdown.of(PodEnded)[0].outcome is PodOutcome.UNCONFIRMED
    assert shutdown.deliveries("TERM", "dns")[0].at == pytest.approx(20)
    assert shutdown.over == pytest.approx(30)  # while there is time, the kill may still work


def test_less_granted_than_asked_for_shrinks_the_ordinary_phases():
    stubborn = {"main": ContainerScript(after_term=math.inf)}
    shutdown = Shutdown(
        TWO, [(pod("a", grace=60), stubborn), (pod("dns", priority=2_000_000_000, grace=60), stubborn)], granted=15
    )
    assert [e.seconds for e in shutdown.of(PhaseStarted)] == [5, pytest.approx(10, abs=0.11)]
    assert shutdown.over <= 15


def test_saved_time_is_given_back_to_the_phases_that_had_to_shrink():
    plan = phases((0, 20), (1000, 20), (2_000_000_000, 10))
    stubborn = {"main": ContainerScript(after_term=math.inf)}
    shutdown = Shutdown(plan, [(pod("quick"), None), (pod("slow", priority=1000, grace=60), stubborn)], granted=30)
    assert [e.seconds for e in shutdown.of(PhaseStarted)] == [15, 20]


def test_critical_pods_that_only_the_fresh_list_has_keep_their_seconds():
    """The list at hand may be older than they are."""

    async def appear(shutdown, clock):
        await clock.sleep(0.01)
        shutdown.runtime.add(
            pod("dns", uid="dns", priority=2_000_000_000, grace=60), {"main": ContainerScript(after_term=9)}
        )

    stubborn = {"main": ContainerScript(after_term=math.inf)}
    shutdown = Shutdown(TWO, [(pod("a", uid="a", grace=60), stubborn)], granted=15, until=appear)
    assert [(e.index, e.seconds) for e in shutdown.of(PhaseStarted)] == [(0, 15), (1, pytest.approx(10, abs=0.11))]
    assert [(e.index, e.seconds) for e in shutdown.of(PhaseShortened)] == [(0, 5)]
    assert [d.at for d in shutdown.deliveries("KILL")] == [pytest.approx(4.9)], "the critical pod ends by itself"
    assert shutdown.over <= 15


def test_hooks_and_sidecars_of_a_phase_that_is_shortened_make_way_too():
    async def appear(shutdown, clock):
        await clock.sleep(0.01)
        shutdown.runtime.add(pod("dns", priority=2_000_000_000), {"main": ContainerScript(after_term=9)})

    hooked, mesh = pod("hooked", uid="hooked", hook=60), pod("mesh", uid="mesh", sidecars=("proxy",))
    stubborn = {"main": ContainerScript(after_term=math.inf)}
    shutdown = Shutdown(TWO, [(hooked, None), (mesh, stubborn)], granted=15, until=appear)
    assert [d.at for d in shutdown.deliveries("hook over")] == [pytest.approx(2.9)]
    assert [d.at for d in shutdown.deliveries("TERM") if d.container == "proxy"] == [pytest.approx(2.9)]
    assert [e.ok for e in shutdown.of(HookEnded)] == [False]
    assert shutdown.of(PhaseEnded)[0].at == pytest.approx(4.9)


def test_what_cannot_be_killed_is_given_up_at_the_end_of_a_phase_that_is_shortened():
    async def appear(shutdown, clock):
        await clock.sleep(0.01)
        shutdown.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=9)})

    stuck = ContainerScript(after_term=math.inf, after_kill=math.inf)
    shutdown = Shutdown(TWO, [(pod("stuck", grace=60), {"main": stuck})], granted=15, until=appear)
    assert [(e.at, e.end) for e in shutdown.of(PhaseEnded)][0] == (pytest.approx(5), PhaseEnd.RAN_OUT)
    assert [d.at for d in shutdown.deliveries("TERM", "dns")] == [pytest.approx(5)]


def test_a_fresh_list_without_news_shortens_nothing():
    shutdown = Shutdown(
        TWO,
        [(pod("a"), {"main": ContainerScript(after_term=2)}), (pod("dns", priority=2_000_000_000), None)],
        granted=15,
    )
    assert shutdown.of(PhaseShortened) == []


@pytest.mark.parametrize(("seconds", "kills", "kill"), [(1, 5, 0.5), (4, 2.5, 2), (20, 5, 15)])
def test_at_most_half_of_a_short_phase_is_kept_for_its_kills(seconds, kills, kill):
    stubborn = {"main": ContainerScript(after_term=math.inf)}
    shutdown = Shutdown(phases((0, seconds)), [(pod("a", grace=60), stubborn)], margin=kills)
    assert [d.at for d in shutdown.deliveries("KILL")] == [pytest.approx(kill)]


def test_cancelled_between_two_pods():
    async def cancel(shutdown, clock):
        await clock.sleep(2)
        shutdown.run.stop()

    shutdown = Shutdown(
        TWO,
        [
            (pod("begun", uid="begun"), {"main": ContainerScript(after_term=5)}),
            (pod("spared", uid="spared", priority=2_000_000_000), None),
        ],
        until=cancel,
    )
    assert shutdown.over == 2
    assert [d.what for d in shutdown.runtime.deliveries if d.uid == "begun"] == ["TERM", "exit"]
    assert shutdown.deliveries("TERM", "spared") == []
    assert shutdown.of(PhaseEnded)[0].end is PhaseEnd.CANCELLED
    assert shutdown.node.whens("last word") == []


def test_cancelled_between_the_first_pod_of_a_phase_and_the_others():
    async def cancel(shutdown, clock):
        while not shutdown.of(PodStarted):
            await clock.sleep(0)
        shutdown.run.stop()
        await clock.sleep(1)

    slow = {"main": ContainerScript(after_term=5)}
    shutdown = Shutdown(TWO, [(pod(name, uid=name), slow) for name in ("a", "b")], until=cancel)
    assert [event.uid for event in shutdown.of(PodStarted)] == ["a"]
    assert [sent.uid for sent in shutdown.deliveries("TERM")] == ["a"]
    assert shutdown.over == 0, "the cancellation is heard at once"


def test_observing_ends_nothing():
    shutdown = Shutdown(TWO, [(pod("a"), None), (pod("b", priority=2_000_000_000), None)], mode=ShutdownMode.OBSERVE)
    assert shutdown.runtime.deliveries == []
    assert [e.outcome for e in shutdown.of(PodEnded)] == [PodOutcome.OBSERVED] * 2
    assert shutdown.node.told == []


def test_a_pod_that_appears_late_is_ended_too():
    async def appear(shutdown, clock):
        await clock.sleep(1)
        shutdown.runtime.add(pod("late", uid="late"))

    shutdown = Shutdown(
        TWO,
        [(pod("slow"), {"main": ContainerScript(after_term=4)}), (pod("dns", uid="dns", priority=2_000_000_000), None)],
        until=appear,
    )
    assert [d.at for d in shutdown.deliveries("TERM", "late")] == [RELIST_SECONDS]


def test_a_runtime_that_is_away_is_waited_for():
    async def outage(shutdown, clock):
        await clock.sleep(0.5)
        shutdown.runtime.away = True
        await clock.sleep(3)
        shutdown.runtime.away = False

    shutdown = Shutdown(TWO, [(pod("a", hook=1), {"main": ContainerScript(after_term=1)})], until=outage)
    assert 3.5 <= shutdown.deliveries("TERM")[0].at < 4
    assert shutdown.of(PodEnded)[0].outcome is PodOutcome.GRACEFUL


def test_a_runtime_that_is_away_at_first_is_waited_for():
    """With no list of pods it is not known that there are none."""

    async def outage(shutdown, clock):
        shutdown.runtime.away = True
        await clock.sleep(3)
        shutdown.runtime.away = False

    shutdown = Shutdown(TWO, [(pod("a", uid="a"), {"main": ContainerScript(after_term=1)})], until=outage)
    assert 3 <= shutdown.deliveries("TERM")[0].at < 3.5
    assert shutdown.over < 5
    notes = [event.text for event in shutdown.of(NoteWritten)]
    assert notes == ["the container runtime cannot list its pods: the runtime is away"]


def test_a_runtime_that_never_comes_back_is_waited_for_until_the_deadline():
    async def outage(shutdown, clock):
        shutdown.runtime.away = True

    shutdown = Shutdown(TWO, [(pod("a"), None)], until=outage)
    assert shutdown.over == pytest.approx(30, abs=0.3)
    assert shutdown.of(PhaseEnded) == []


def test_a_pod_that_has_ended_by_itself_is_not_waited_for():
    """No hook runs for it, and no SIGTERM is told that nobody got."""

    async def finish(shutdown, clock):
        await clock.sleep(1)
        shutdown.runtime.exit_container("job/main")

    shutdown = Shutdown(
        TWO,
        [
            (pod("web"), {"main": ContainerScript(after_term=4)}),
            (pod("job", uid="job", priority=2_000_000_000, hook=9), None),
        ],
        until=finish,
    )
    assert shutdown.over == 4
    assert [d.what for d in shutdown.runtime.deliveries if d.uid == "job"] == ["exit"]
    assert [e.end for e in shutdown.of(PhaseEnded)] == [PhaseEnd.DONE, PhaseEnd.EMPTY]


behaviours = st.builds(
    ContainerScript,
    after_term=st.sampled_from([0.0, 0.5, 3.0, 17.0, math.inf]),
    after_kill=st.sampled_from([0.0, 0.02, 0.05]),
    hook=st.sampled_from([0.0, 1.5, 12.0, 100.0]),
)


@pytest.mark.parametrize("known", ["", "web", "db"])
@pytest.mark.parametrize("plan", [TWO, phases((0, 20))])
def test_a_shutdown_is_not_over_before_the_first_fresh_list_has_come(plan, known):
    """It takes longer than a phase waits for it, and has pods that the list at hand has not."""

    class Slow(ActorRuntime):
        async def list_pods(self):
            return [live for live in await super().list_pods() if live.pod.metadata.name == known]

        async def refresh_pods(self):
            await self._clock.sleep(3)
            return await ActorRuntime.list_pods(self)

    both = [(pod("web", uid="web", hook=2), None), (pod("db", uid="db", hook=2, priority=1000), None)]
    shutdown = Shutdown(plan, both, runtime=Slow)
    assert {one.uid for one in shutdown.deliveries("TERM")} == {"web", "db"}
    assert not shutdown.deliveries("KILL")
    assert {one.ok for one in shutdown.of(HookEnded)} == {True}
    assert len(shutdown.of(HookEnded)) == 2
    assert shutdown.over < 10


def test_a_runtime_that_never_lists_holds_a_shutdown_up_for_seconds_only():
    class Silent(ActorRuntime):
        async def list_pods(self):
            return []

        async def refresh_pods(self):
            await self._clock.sleep(1000)

    assert Shutdown(TWO, [(pod("web"), None)], runtime=Silent).over < 10
