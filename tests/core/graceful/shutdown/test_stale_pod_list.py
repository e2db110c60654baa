"""A shutdown whose list of pods is old, and one whose sandboxes are slow to go; in virtual time."""

import asyncio
import math
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from support.agents import shutdown_records
from support.agents.virtual_parts import RecordingNode, phases, pod

from lastcall.errors import Unavailable
from lastcall.graceful.shutdown.pod_ends import SANDBOX_DELAY
from lastcall.graceful.shutdown.roster import Roster
from lastcall.graceful.shutdown.run import ShutdownRun
from lastcall.model.pods import HostPath, Volume
from lastcall.model.shutdown import PhaseEnd, PhaseEnded, PodEnded, PodOutcome, PodStarted, ShutdownMode
from lastcall.model.shutdown_fold import fold_events
from lastcall.ports.node import PrioritySource, RunningPod
from lastcall_lab import virtual
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript

ONE = phases((0, 20))
TWO = phases((0, 20), (2_000_000_000, 10))
SLOW = ContainerScript(after_term=3)
STUBBORN = ContainerScript(after_term=math.inf)


class OldList(ActorRuntime):
    """``list_pods`` answers with what was copied last; ``teardown`` is how long a sandbox takes, None for for ever away.

    ``sandboxes`` are those of pods that were made anew.
    """

    copy = None
    teardown = 0.0
    reread_takes = 0.0
    source = PrioritySource.DEFAULT

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.sandboxes = {}
        self.teardowns = 0
        self.torn_down = []

    async def list_pods(self):
        return await self.refresh_pods() if self.copy is None else self.copy

    async def refresh_pods(self):
        return [
            replace(live, sandbox=self.sandboxes.get(live.pod.metadata.uid, ""), priority_source=self.source)
            for live in await super().list_pods()
        ]

    async def reread_pod(self, live):
        while self.reread_takes:
            await self._clock.sleep(min(1.0, self.reread_takes))
        mine = live.sandbox == self.sandboxes.get(live.pod.metadata.uid, "")
        return await super().reread_pod(live) if mine else None

    async def tear_down_pod(self, live):
        self.teardowns += 1
        self.torn_down.append((self._clock.boottime(), live.pod.metadata.uid))
        if self.teardown is None:
            raise Unavailable("the network plugin does not answer")
        await self._clock.sleep(self.teardown)
        await super().tear_down_pod(live)

    async def grow_old(self):
        self.copy = await self.refresh_pods()

    async def restart(self, spec, name):
        """The container ends by itself, and the kubelet starts another in its place."""
        self.exit_container(f"{spec.metadata.uid}/{name}", code=1)
        await self._clock.sleep(0.01)
        await self.launch_container(spec, next(c for c in spec.spec.containers if c.name == name), attempt=1)
        await self._clock.sleep(1)

    async def make_anew(self, spec):
        """The kubelet starts the pod once more, in another sandbox."""
        self.sandboxes[spec.metadata.uid] = "another"
        await self.create_sandbox(spec)
        await self.launch_container(spec, spec.spec.containers[0], attempt=1)

    async def replace_all(self, spec):
        """The same, while a container of the old one hangs."""
        del self._live[spec.metadata.uid]
        await self.make_anew(spec)


class World:
    def __init__(self, clock, plan, script):
        self.clock, self.events = clock, []
        self.runtime = OldList(clock, script=lambda *_: script)
        self.node = RecordingNode(clock)
        self.plan = plan

    def run(self):
        seconds = sum(phase.seconds for phase in self.plan)
        self.began = self.clock.boottime()
        return ShutdownRun(
            self.plan,
            deadline=self.began + seconds,
            mode=ShutdownMode.ENFORCE,
            runtime=self.runtime,
            node=self.node,
            clock=self.clock,
            tell=self.events.append,
        )

    @asynccontextmanager
    async def going_down(self):
        run = self.run()
        task = asyncio.create_task(run.run_phases())
        try:
            yield run
            await task
        finally:
            self.took = round(self.clock.boottime() - self.began, 2)
            await run.abandon()

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def got(self, uid, container):
        """What reached a container since the button was pressed, and when."""
        mine = [d for d in self.runtime.deliveries if (d.uid, d.container) == (uid, container) and d.at >= self.began]
        return [(round(d.at - self.began, 2), d.what) for d in mine]


def played(scene, plan=ONE, script=SLOW):
    async def main():
        world = World(virtual.VirtualClock(), plan, script)
        await scene(world)
        return world

    return virtual.run(main())


def test_a_container_that_was_restarted_since_the_list_has_its_hook_and_its_sigterm():
    async def scene(world):
        db = pod("db", uid="db", hook=4)
        world.runtime.add(db)
        await world.runtime.grow_old()
        await world.runtime.restart(db, "main")
        async with world.going_down():
            pass

    world = played(scene)
    # The hook of the list's container is a sleep, which ends at its time; then comes the one that runs.
    assert world.got("db", "main")[-4:] == [(4, "hook"), (8, "hook over"), (8, "TERM"), (11, "exit")]
    assert [event.outcome for event in world.of(PodEnded)] == [PodOutcome.GRACEFUL]
    assert world.of(PodEnded)[0].at == world.began + 11
    assert len(world.of(PodStarted)) == 1


def test_a_container_that_follows_another_is_ended_in_its_turn():
    """Such as the main container after an init container, which was all that ran when the list was made."""

    async def scene(world):
        web = pod("web", uid="web", containers=("init", "main"))
        world.runtime.add(web, {"init": ContainerScript()}, only={"init"})
        await world.runtime.grow_old()
        world.runtime.exit_container("web/init")
        await world.clock.sleep(0.01)
        await world.runtime.launch_container(web, web.spec.containers[1], attempt=0)
        await world.clock.sleep(1)
        async with world.going_down():
            pass

    world = played(scene)
    assert world.got("web", "main") == [(0, "TERM"), (3, "exit")]
    assert world.of(PodEnded)[0].at == world.began + 3


def test_what_the_kubelet_starts_after_a_cancel_runs_on():
    async def scene(world):
        web = pod("web", uid="web", containers=("a", "b"))
        world.runtime.add(web, {"a": ContainerScript(after_term=1), "b": ContainerScript(after_term=3)})
        async with world.going_down() as run:
            await world.clock.sleep(2)
            run.stop()
            await world.runtime.launch_container(web, web.spec.containers[0], attempt=1)
            await world.clock.sleep(10)

    world = played(scene)
    assert world.got("web", "b") == [(0, "TERM"), (3, "exit")]
    assert world.got("web", "a") == [(0, "TERM"), (1, "exit"), (2, "start")]
    assert world.of(PodEnded)[0].at == world.began + 3


def test_a_runtime_that_is_away_when_a_container_has_ended_is_asked_again():
    async def scene(world):
        db = pod("db", uid="db")
        world.runtime.add(db)
        await world.runtime.grow_old()
        await world.runtime.restart(db, "main")
        world.runtime.away = True
        async with world.going_down():
            await world.clock.sleep(5)
            world.runtime.away = False

    world = played(scene)
    assert [what for _, what in world.got("db", "main")] == ["TERM", "exit"]
    assert world.of(PodEnded)[0].at >= world.began + 8


def test_a_sandbox_that_is_slow_to_go_holds_the_next_phase_up_for_two_seconds_and_the_pod_has_ended():
    async def scene(world):
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        world.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": SLOW})
        world.runtime.teardown = math.inf
        async with world.going_down():
            pass

    world = played(scene, TWO)
    assert [(event.uid, event.at - world.began, event.outcome) for event in world.of(PodEnded)] == [
        ("web", 3, PodOutcome.GRACEFUL),
        ("dns", 8, PodOutcome.GRACEFUL),
    ]
    assert world.got("dns", "main")[0] == (5, "TERM")
    assert [event.end for event in world.of(PhaseEnded)] == [PhaseEnd.DONE, PhaseEnd.DONE]
    assert world.took == 8, "the last sandbox needs no pod that still runs"
    assert [what for _, what in world.node.told if what.startswith("ended")] == ["ended web", "ended dns"]


def test_a_phase_whose_containers_have_ended_is_done_at_its_end_although_a_sandbox_is_not():
    async def scene(world):
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        world.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), None)
        world.runtime.teardown = math.inf
        async with world.going_down():
            pass

    world = played(scene, phases((0, 4), (2_000_000_000, 10)))
    assert [event.end for event in world.of(PhaseEnded)] == [PhaseEnd.DONE, PhaseEnd.DONE]
    assert [event.outcome for event in world.of(PodEnded)] == [PodOutcome.GRACEFUL] * 2
    assert world.got("dns", "main")[0] == (4, "TERM")


def test_a_sandbox_that_cannot_be_torn_down_is_tried_again_and_holds_nobody_up():
    async def scene(world):
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        world.runtime.teardown = None
        async with world.going_down():
            pass

    world = played(scene)
    assert [event.outcome for event in world.of(PodEnded)] == [PodOutcome.GRACEFUL]
    assert world.took == 3


@pytest.mark.parametrize(
    ("path", "source", "critical"),
    [
        ("/etc/cni/net.d", PrioritySource.WATCH, 5),
        ("/opt/cni/bin", PrioritySource.CHECKPOINT, 5),
        ("/var/lib/kubelet/plugins/x", PrioritySource.MANIFEST, 5),
        ("/var/log/cnidata", PrioritySource.WATCH, 3),
        ("/var/log", PrioritySource.RUNTIME, 5),
        ("/var/log", PrioritySource.DEFAULT, 5),
    ],
)
def test_sandboxes_hold_up_only_a_phase_that_may_end_network_or_storage(path, source, critical):
    """Without the pod that runs the network plugin its teardown of networks hangs; other pods are not needed for it."""

    async def scene(world):
        mounted = replace(
            pod("agent", uid="agent", priority=2_000_000_000).spec,
            volumes=(Volume(name="host", host_path=HostPath(path=path)),),
        )
        world.runtime.source = source
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        world.runtime.add(replace(pod("agent", uid="agent", priority=2_000_000_000), spec=mounted), {"main": SLOW})
        world.runtime.teardown = math.inf
        async with world.going_down():
            pass

    world = played(scene, TWO)
    assert world.got("agent", "main")[0] == (critical, "TERM")


@pytest.mark.parametrize(
    ("path", "slow", "released", "expected"),
    [
        ("/var/log", 0.5, True, {"web": 0.5, "agent": 0.5}),
        ("/var/log", 0.5, False, {"web": SANDBOX_DELAY, "agent": 0.5 + SANDBOX_DELAY}),
        ("/var/log", 3.0, True, {"web": SANDBOX_DELAY, "agent": 3.0}),
        ("/etc/cni/net.d", 0.5, True, {"web": 0.0, "agent": 0.5}),
    ],
)
def test_a_teardown_waits_for_the_release_but_not_long_unless_it_needs_a_pod_that_ends(path, slow, released, expected):
    async def scene(world):
        beside = replace(pod("agent", uid="agent").spec, volumes=(Volume(name="host", host_path=HostPath(path=path)),))
        world.runtime.source = PrioritySource.WATCH
        world.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=0)})
        world.runtime.add(replace(pod("agent", uid="agent"), spec=beside), {"main": ContainerScript(after_term=slow)})
        run = world.run()
        await run.run_phases()
        if released:
            run.allow_teardowns()
        await world.clock.sleep(2)
        await run.abandon()

    world = played(scene)
    found = {uid: at - world.began for at, uid in world.runtime.torn_down}
    assert found == pytest.approx(expected)


def test_a_shutdown_that_was_called_off_leaves_the_sandbox_to_the_kubelet():
    """It may be starting the container again in it, which a teardown would kill."""

    async def scene(world):
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        world.runtime.teardown = None
        async with world.going_down() as run:
            await world.clock.sleep(1)
            run.stop()
            await world.clock.sleep(10)
        assert world.got("web", "main")[-1][1] == "exit"
        assert world.runtime.teardowns == 0

    played(scene)


def test_a_pod_that_has_ended_is_not_taken_over_for_its_sandbox():
    async def scene(world):
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        world.runtime.teardown = math.inf
        async with world.going_down() as run:
            await world.clock.sleep(2)
            assert run.open_uids == ["web"]
            await world.clock.sleep(2)
            assert run.open_uids == []

    played(scene)


def test_a_pod_in_another_sandbox_than_the_one_that_has_ended_is_waited_for_again():
    """The list was so old that the kubelet had made the whole pod anew meanwhile."""
    web = pod("web", uid="web")
    roster = Roster(ONE, None)
    old, new = (RunningPod(pod=web, containers={"main": run}, sandbox=run) for run in ("old", "new"))
    roster.update([old])
    roster.mark_begun("web")
    roster.mark_containers_ended("web")
    roster.mark_done("web")
    roster.update([old])
    assert roster.waiting_pods(0) == []
    roster.update([new])
    assert roster.waiting_pods(0) == [new]
    roster.mark_begun("web")
    assert not roster.have_containers_ended("web")
    roster.mark_done("web")
    assert roster.waiting_pods(0) == []


def test_a_container_that_a_kubelet_restarts_in_the_sandbox_of_a_pod_that_has_ended_is_waited_for_again():
    """Also if the sandbox has not been torn down yet: the kubelet runs on, as where it is a part of k3s."""
    web = RunningPod(pod=pod("web", uid="web"), containers={"main": "1"}, sandbox="box")
    late, again = (replace(web, containers={"main": run}) for run in ("2", "3"))
    roster = Roster(ONE, None)
    roster.update([web])
    roster.mark_begun("web")
    roster.mark_containers_ended("web", {"1", "2"})
    roster.mark_done("web")
    for old in (web, late):
        roster.update([old])
        assert roster.waiting_pods(0) == [], "the list is old"
    roster.update([again])
    assert roster.waiting_pods(0) == [again]
    assert roster.count_kills([again]) == 0, "it takes no time from the phase's own"
    roster.mark_begun("web")
    roster.mark_done("web")
    assert roster.waiting_pods(0) == [], "its end was not confirmed"


@pytest.mark.parametrize(
    ("runtime_id", "outcome", "waits"),
    [
        ("old", PodOutcome.GRACEFUL, False),
        ("new", PodOutcome.GRACEFUL, True),
        ("new", PodOutcome.KILLED, True),
        ("new", PodOutcome.UNCONFIRMED, False),
    ],
    ids=["the same container", "another one", "after a kill", "it is resumed as it is"],
)
def test_a_pod_that_ended_under_an_earlier_process_and_was_started_again_waits_for_its_end(runtime_id, outcome, waits):
    """Somebody has started the kubelet while no agent ran."""
    script = shutdown_records.Script((0, 20))
    script.pod("web", 0, 0.0, grace=20, containers={"main": {"term": 0.1, "ended": 2.0}}, outcome=outcome)
    record = fold_events(script.events())
    [web] = record.pods
    main = replace(web.containers[0], runtime_id="old")
    roster = Roster(ONE, replace(record, pods=(replace(web, containers=(main,)),)))
    live = RunningPod(pod=pod("web", uid=web.uid), containers={"main": runtime_id}, sandbox="1")
    roster.update([live])
    assert roster.waiting_pods(0) == ([live] if waits else [])


def test_a_pod_that_is_made_anew_again_and_again_is_ended_a_few_times_and_takes_no_time_of_a_phases_own():
    """As where the kubelet is a part of k3s and is not stopped."""
    web, dns = (
        RunningPod(pod=pod(name, uid=name), containers={"a": "1", "b": "2"}, sandbox="1") for name in ("w", "d")
    )
    roster = Roster(ONE, None)
    for sandbox, expected in (("1", 4), ("2", 2), ("3", 2), ("4", 2), ("5", None)):
        made = replace(web, sandbox=sandbox)
        roster.update([made, dns])
        waiting = roster.waiting_pods(0)
        assert (made in waiting) is (expected is not None)
        if made in waiting:
            assert roster.count_kills(waiting) == expected
            roster.mark_begun("w")
            roster.mark_done("w")
    assert roster.waiting_pods(0) == [dns]


def test_pods_that_were_made_anew_leave_the_critical_phase_its_time():
    async def scene(world):
        world.runtime.kill_seconds = lambda containers: containers * 0.5
        many = [pod(f"web-{number}", uid=f"web-{number}") for number in range(10)]
        for web in many:
            world.runtime.add(web, {"main": ContainerScript(after_term=1)})
        world.runtime.add(pod("last", uid="last"), {"main": ContainerScript(after_term=8)})
        world.runtime.add(pod("dns", uid="dns", priority=2_000_000_000, grace=60), {"main": STUBBORN})
        async with world.going_down():
            await world.clock.sleep(7)
            for web in many:
                await world.runtime.make_anew(web)

    world = played(scene, TWO)
    assert world.got("web-0", "main") == [(0, "TERM"), (1, "exit"), (7, "start"), (8, "TERM"), (11, "exit")]
    (term, _), (kill, _) = world.got("dns", "main")[:2]
    assert (term, kill - term) == (11, 9.5)


@pytest.mark.parametrize(("seconds", "kill"), [(15, 13.0), (4, 12.9)])
def test_a_pod_that_began_after_the_list_has_the_time_of_its_own_phase(seconds, kill):
    """It had been ordered to start before. If its phase is almost over, the next one gives it more."""

    async def scene(world):
        late = pod("late", uid="late", grace=10)
        world.runtime.add(pod("web", uid="web"), {"main": SLOW})
        async with world.going_down():
            await world.clock.sleep(2.5)
            world.runtime.add(late, {"main": STUBBORN})

    world = played(scene, phases((0, seconds), (2_000_000_000, 10)))
    assert world.got("late", "main")[:2] == [(3, "TERM"), (kill, "KILL")]
    assert [event.end for event in world.of(PhaseEnded)] == [
        PhaseEnd.DONE,
        PhaseEnd.EMPTY if seconds == 15 else PhaseEnd.DONE,
    ]


def test_an_end_that_was_given_up_does_not_end_the_one_that_has_begun_since():
    hung = ContainerScript(after_term=math.inf, after_kill=6)

    async def scene(world):
        web = pod("web", uid="web")
        world.runtime.add(web, {"main": hung})
        world.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), None)
        async with world.going_down() as run:
            await world.clock.sleep(3)
            await world.runtime.replace_all(web)
            await world.clock.sleep(8)
            assert run.open_uids == ["web"]

    world = played(scene, phases((0, 4), (2_000_000_000, 20)), script=ContainerScript(after_term=12))
    ends = [(event.index, event.end, round(event.at - world.began, 2)) for event in world.of(PhaseEnded)]
    assert ends == [(0, PhaseEnd.RAN_OUT, 4), (1, PhaseEnd.DONE, 16)]


@pytest.mark.parametrize(
    ("answer", "main", "proxy"),
    [(0.0, [(0, "TERM"), (3, "exit")], [(3, "TERM"), (3, "exit")]), (math.inf, [], [(0.25, "TERM"), (0.25, "exit")])],
    ids=["answers", "hangs"],
)
def test_a_container_that_began_after_the_list_ends_before_its_sidecar(answer, main, proxy):
    """A second look that hangs holds up SIGTERM for a moment only."""

    async def scene(world):
        mesh = pod("mesh", uid="mesh", sidecars=("proxy",))
        world.runtime.add(mesh, only={"proxy"})
        await world.runtime.grow_old()
        await world.runtime.launch_container(mesh, mesh.spec.containers[0], attempt=0)
        await world.clock.sleep(1)
        world.runtime.reread_takes = answer
        async with world.going_down():
            await world.clock.sleep(10)
            world.runtime.reread_takes = 0.0

    world = played(scene)
    assert world.got("mesh", "main")[: len(main)] == main
    assert world.got("mesh", "proxy") == proxy
