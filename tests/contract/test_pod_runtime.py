"""What every pod runtime promises (``ports.PodRuntime``, ``ports.PodStarter``), told by the containers themselves."""

import asyncio
import time

import pytest
from msgspec.structs import replace
from support.runtimes.pod_scripts import (
    GATED,
    OBEDIENT,
    READY,
    SOON,
    STUBBORN,
    container,
    open_gate,
    pod,
    says,
    shell,
    started,
    stop,
    told,
)

from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError


async def ended(world):
    return await asyncio.wait_for(world.runtime.next_ended(), SOON)


async def running(world):
    """The running containers' names by pod, read anew."""
    return {live.pod.metadata.name: sorted(live.containers) for live in await world.runtime.refresh_pods()}


class TestStop:
    async def test_a_container_handles_sigterm_and_its_exit_code_is_known(self, world):
        _, main = await started(world)
        assert await stop(world, main, 60) == 7
        assert told(world, "web.main") == ["ready", "TERM"]
        assert await running(world) == {}

    async def test_a_container_that_dies_of_sigterm_has_exit_code_143(self, world):
        _, main = await started(
            world, script=f"trap 'trap - TERM; kill -TERM $$' TERM; {READY} sleep 1000 & wait; exit 5"
        )
        code = await stop(world, main, 30)
        # A PID namespace's first process cannot die of its own SIGTERM: there it goes on and leaves with 5.
        assert code in (143, 5)

    async def test_one_that_goes_on_is_killed_when_its_grace_is_over(self, world):
        _, main = await started(world, script=STUBBORN)
        begin = time.monotonic()
        assert await stop(world, main, 3) == 137
        assert time.monotonic() - begin > 2.9
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_one_that_ignores_sigterm_is_killed_too(self, world):
        _, main = await started(world, script=f"trap '' TERM; {READY} sleep 1000")
        assert await stop(world, main, 0.5) == 137

    async def test_kill_ends_a_stop_early(self, world):
        _, main = await started(world, script=STUBBORN)
        stopping = asyncio.create_task(world.runtime.stop_container(main, 600))
        await says(world, "web.main", "ready", "TERM")
        await world.runtime.kill_container(main)
        assert await asyncio.wait_for(stopping, SOON) == 137

    async def test_an_ended_container_can_be_forgotten_and_a_running_one_is_left_alone(self, world):
        _, main = await started(world)
        await world.runtime.forget_container(main)
        assert await running(world) == {"web": ["main"]}
        assert await stop(world, main, 60) == 7
        await world.runtime.forget_container(main)
        await world.runtime.forget_container(main)
        assert await running(world) == {}

    async def test_kill_needs_no_stop(self, world):
        live, main = await started(world, script=STUBBORN)
        await world.runtime.kill_container(main)
        assert await ended(world) == (live.pod.metadata.uid, "main", 137)
        assert told(world, "web.main") == ["ready"]

    async def test_several_stops_send_one_sigterm(self, world):
        _, main = await started(world, script=STUBBORN)
        codes = await asyncio.gather(*(stop(world, main, grace) for grace in (3, 3, 4)))
        assert codes == [137, 137, 137]
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_a_shorter_stop_tightens_a_longer_one(self, world):
        _, main = await started(world, script=STUBBORN)
        long = asyncio.create_task(world.runtime.stop_container(main, 600))
        await says(world, "web.main", "ready", "TERM")
        assert await stop(world, main, 1) == 137
        assert await asyncio.wait_for(long, SOON) == 137
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_a_longer_stop_does_not_loosen_a_shorter_one(self, world):
        _, main = await started(world, script=STUBBORN)
        short = asyncio.create_task(world.runtime.stop_container(main, 1))
        await says(world, "web.main", "ready", "TERM")
        assert await stop(world, main, 600) == 137
        assert await asyncio.wait_for(short, SOON) == 137

    async def test_what_has_ended_or_is_unknown_counts_as_stopped(self, world):
        _, main = await started(world)
        assert await stop(world, main, 60) == 7
        assert await stop(world, main, 60) in (7, None)
        assert await stop(world, "no-such-container", 60) is None
        await world.runtime.kill_container(main)
        await world.runtime.kill_container("no-such-container")

    async def test_one_grace_serves_all_pods(self, world):
        """All have SIGTERM before the first has ended; one after the other is not parallel."""
        names = [f"pod-{number}" for number in range(10)]
        lives = await asyncio.gather(
            *(world.runtime.start_pod(pod(world, name, container("main", STUBBORN))) for name in names)
        )
        for name in names:
            await says(world, f"{name}.main", "ready")
        mains = [live.containers["main"] for live in lives]
        stops = [asyncio.create_task(world.runtime.stop_container(main, 600)) for main in mains]
        for name in names:
            await says(world, f"{name}.main", "ready", "TERM")
        assert not any(stop.done() for stop in stops)
        await asyncio.gather(*(world.runtime.kill_container(main) for main in mains))
        assert await asyncio.wait_for(asyncio.gather(*stops), SOON) == [137] * 10

    async def test_containers_of_one_pod_end_independently(self, world):
        live = await world.runtime.start_pod(pod(world, "web", container("one", OBEDIENT), container("two", OBEDIENT)))
        await says(world, "web.one", "ready")
        await says(world, "web.two", "ready")
        assert await stop(world, live.containers["one"], 60) == 7
        assert await running(world) == {"web": ["two"]}
        assert told(world, "web.two") == ["ready"]
        assert await stop(world, live.containers["two"], 60) == 7
        assert await running(world) == {}


class TestPods:
    async def test_they_are_listed_with_all_that_decides_how_they_end(self, world):
        hook = {"preStop": {"httpGet": {"port": "admin", "path": "/leave"}}}
        ports = [{"name": "admin", "containerPort": 8080}]
        made = pod(
            world,
            "db",
            container("main", OBEDIENT, lifecycle=hook, ports=ports),
            init=[container("log", OBEDIENT, restartPolicy="Always")],
            namespace="shop",
            labels={"app": "db"},
            annotations={"example.com/note": "primary"},
        )
        await world.runtime.start_pod(made)
        await says(world, "db.main", "ready")
        for again in (False, True):
            if again:
                await world.restarted()
            (live,) = await world.runtime.refresh_pods()
            metadata, spec = live.pod.metadata, live.pod.spec
            assert (metadata.namespace, metadata.name, metadata.uid) == ("shop", "db", made.metadata.uid)
            assert metadata.labels["app"] == "db"
            assert metadata.annotations["example.com/note"] == "primary"
            assert sorted(live.containers) == ["log", "main"]
            assert len(set(live.containers.values())) == 2
            assert spec.termination_grace_period_seconds == 5
            (main,) = (one for one in spec.containers if one.name == "main")
            assert main.pre_stop.http_get.path == "/leave"
            assert [(port.name, port.container_port) for port in main.ports] == [("admin", 8080)]

    async def test_finished_containers_and_pods_are_not_listed(self, world):
        await world.runtime.start_pod(pod(world, "job", container("main", f"{GATED} 0"), container("other", OBEDIENT)))
        await says(world, "job.main", "ready")
        await says(world, "job.other", "ready")
        open_gate(world, "job.main")
        assert (await ended(world))[1:] == ("main", 0)
        assert await running(world) == {"job": ["other"]}
        (live,) = await world.runtime.list_pods()
        await stop(world, live.containers["other"], 60)
        assert await running(world) == {}
        assert list(await world.runtime.list_pods()) == []

    async def test_ended_tells_the_end_of_each_container_in_order(self, world):
        live = await world.runtime.start_pod(
            pod(world, "job", container("one", f"{GATED} 3"), container("two", f"{GATED} 0"))
        )
        await says(world, "job.one", "ready")
        await says(world, "job.two", "ready")
        open_gate(world, "job.two")
        await says(world, "job.two", "ready", "bye")
        await asyncio.sleep(1)
        open_gate(world, "job.one")
        uid = live.pod.metadata.uid
        assert [await ended(world), await ended(world)] == [(uid, "two", 0), (uid, "one", 3)]

    async def test_finish_may_be_repeated_and_the_name_is_free_again(self, world):
        live, main = await started(world)
        await stop(world, main, 60)
        await world.runtime.tear_down_pod(live)
        await world.runtime.tear_down_pod(live)
        assert await running(world) == {}
        await world.runtime.start_pod(pod(world, "web", container("main", OBEDIENT)))
        await says(world, "web.main", "ready", "TERM", "ready")

    async def test_finish_leaves_alone_what_still_runs(self, world):
        live, main = await started(world)
        await asyncio.wait_for(world.runtime.tear_down_pod(live), SOON)
        assert await running(world) == {"web": ["main"]}
        assert await stop(world, main, 60) == 7
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_finish_leaves_alone_what_was_started_after_the_list(self, world):
        live, main = await started(world)
        await asyncio.wait_for(world.runtime.tear_down_pod(replace(live, containers={})), SOON)
        assert await running(world) == {"web": ["main"]}
        assert await stop(world, main, 60) == 7
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_look_again_sees_what_runs_of_a_pod(self, world):
        live, main = await started(world)
        now = await world.runtime.reread_pod(replace(live, containers={"main": "an-earlier-one"}))
        assert now.containers == {"main": main}
        assert now.pod.metadata.uid == live.pod.metadata.uid
        await stop(world, main, 60)
        assert await world.runtime.reread_pod(live) is None

    async def test_remove_kills_and_forgets(self, world):
        live, _ = await started(world, script=STUBBORN)
        await asyncio.wait_for(world.runtime.remove_pod(live.pod.metadata.uid), SOON)
        await world.runtime.remove_pod(live.pod.metadata.uid)
        await world.runtime.remove_pod("no-such-uid")
        assert await running(world) == {}
        assert told(world, "web.main") == ["ready"]

    async def test_a_stop_never_waits_long_for_its_turn(self, world):
        assert world.runtime.reserve_stop() == 0
        assert all(0 <= world.runtime.reserve_stop() <= 0.25 for _ in range(1000))

    async def test_kill_seconds_grows_with_the_number_of_containers(self, world):
        assert 0 < world.runtime.kill_seconds(1) <= world.runtime.kill_seconds(110) < 60


class TestStart:
    async def test_init_containers_run_to_their_end_in_order_before_the_others(self, world):
        out = world.directory / "order"
        say = [container(name, f"sleep 0.2; echo {name} >> {out}") for name in ("init-1", "init-2")]
        side = container("side", f"echo side >> {out}; {OBEDIENT}", restartPolicy="Always")
        main = container("main", f"echo main >> {out}; {OBEDIENT}")
        live = await world.runtime.start_pod(pod(world, "web", main, init=[say[0], side, say[1]]))
        await says(world, "web.main", "ready")
        await says(world, "web.side", "ready")
        order = told(world, "order")
        assert order[0] == "init-1"
        assert order[-1] == "main"
        assert sorted(order[1:3]) == ["init-2", "side"]
        assert sorted(live.containers) == ["main", "side"]

    async def test_a_failed_init_container_fails_the_pod_and_nothing_of_it_stays(self, world):
        side = container("side", STUBBORN, restartPolicy="Always")
        broken = container("broken", "exit 3")
        with pytest.raises(LastcallError, match=r"broken.*3"):
            await world.runtime.start_pod(pod(world, "web", container("main", OBEDIENT), init=[side, broken]))
        assert await running(world) == {}
        assert told(world, "web.main") == []

    async def test_environment_arguments_and_working_directory(self, world):
        directory = world.directory / "work dir"
        directory.mkdir()
        one = container("main", "", env=[{"name": "GREETING", "value": "good night, 'all'\n$HOME"}])
        one |= {
            "command": ["sh", "-c", 'echo "$GREETING|$0|$1|$(pwd)" >> "$OUT"; sleep 1000'],
            "args": ["zero", "first  argument"],
            "workingDir": str(directory),
        }
        await world.runtime.start_pod(pod(world, "web", one))
        await says(world, "web.main", "good night, 'all'", f"$HOME|zero|first  argument|{directory}")


class TestAfterARestart:
    """``restarted()``: a new runtime object, as after this process had been killed."""

    async def test_running_containers_are_found_again_and_can_be_stopped(self, world):
        _, main = await started(world)
        await world.restarted()
        (live,) = await world.runtime.list_pods()
        assert live.containers == {"main": main}
        assert await stop(world, main, 60) == 7
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_sigterm_is_sent_once_all_the_same(self, world):
        _, main = await started(world, script=STUBBORN)
        stopping = asyncio.create_task(world.runtime.stop_container(main, 30))
        await says(world, "web.main", "ready", "TERM")
        await cancel_and_wait(stopping)
        await world.restarted()
        assert await stop(world, main, 1) == 137
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_what_ended_meanwhile_is_told_with_its_exit_code(self, world):
        live, main = await started(world, script=f"{GATED} 3")
        open_gate(world, "web.main")
        await says(world, "web.main", "ready", "bye")
        await world.restarted()
        assert await ended(world) == (live.pod.metadata.uid, "main", 3)
        assert await running(world) == {}
        assert await stop(world, main, 60) in (3, None)

    async def test_what_ends_later_is_told_too(self, world):
        live, _ = await started(world, script=f"{GATED} 4")
        await world.restarted()
        open_gate(world, "web.main")
        assert await ended(world) == (live.pod.metadata.uid, "main", 4)

    async def test_hooks_run(self, world):
        await started(world)
        await world.restarted()
        (live,) = await world.runtime.list_pods()
        assert (await world.runtime.run_hook(live, "main", shell('echo HOOK >> "$OUT"'), 60)).ok
        assert told(world, "web.main") == ["ready", "HOOK"]

    async def test_a_finished_pod_stays_finished(self, world):
        live, main = await started(world)
        await stop(world, main, 60)
        await world.runtime.tear_down_pod(live)
        await world.restarted()
        assert await running(world) == {}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.runtime.next_ended(), 0.5)
