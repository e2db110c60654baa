"""What is special to pods as plain processes when they start and in hooks; what they share with other runtimes is in ``contract``."""

import asyncio
import time
from pathlib import Path

import pytest
from support.runtimes.pod_scripts import (
    GATED,
    OBEDIENT,
    READY,
    STUBBORN,
    container,
    eventually,
    open_gate,
    pod,
    says,
    shell,
    told,
)
from support.runtimes.process_pods import a_world, alive, directory, processes_of, started, stop  # noqa: F401  (fixtures)

from lastcall.errors import InvalidInput, Unavailable
from lastcall.model.pods import ExecAction, LifecycleHandler


async def cost_of_a_second():
    """The seconds of CPU that this process takes in one."""
    begin = time.process_time()
    await asyncio.sleep(1)
    return time.process_time() - begin


class TestStart:
    async def test_a_pod_that_runs_is_not_started_again(self, world):
        live, _, _ = await started(world)
        with pytest.raises(InvalidInput, match="runs already"):
            await world.runtime.start_pod(live.pod)
        assert list((await world.runtime.list_pods())[0].containers) == ["main"]

    async def test_a_pod_that_has_ended_is_started_again_as_another(self, world):
        live, main, _ = await started(world, STUBBORN)
        assert await stop(world, main, 3) == 137
        again = await world.runtime.start_pod(live.pod)
        assert again.containers["main"] != main
        assert await stop(world, main) is None
        await says(world, "web.main", "ready", "TERM", "ready")
        assert await stop(world, again.containers["main"], 3) == 137
        assert told(world, "web.main") == ["ready", "TERM", "ready", "TERM"]

    async def test_one_who_cancels_leaves_nothing(self, world):
        made = pod(world, "web", container("main", OBEDIENT), init=[container("slow", f"{READY} sleep 1000")])
        starting = asyncio.create_task(world.runtime.start_pod(made))
        await says(world, "web.slow", "ready")
        assert [list(live.containers) for live in await world.runtime.list_pods()] == [["slow"]]
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert processes_of(made.metadata.uid) == []
        assert list(await world.runtime.list_pods()) == []

    async def test_one_who_removes_it_meanwhile_leaves_nothing(self, world):
        made = pod(world, "web", container("main", OBEDIENT), init=[container("slow", f"{READY} sleep 1000")])
        starting = asyncio.create_task(world.runtime.start_pod(made))
        await says(world, "web.slow", "ready")
        await world.runtime.remove_pod(made.metadata.uid)
        with pytest.raises(Unavailable):
            await starting
        assert processes_of(made.metadata.uid) == []

    async def test_the_end_of_an_init_container_is_no_news(self, world):
        init = [container("first", "exit 0")]
        live = await world.runtime.start_pod(pod(world, "web", container("main", f"{GATED} 1"), init=init))
        open_gate(world, "web.main")
        assert await world.runtime.next_ended() == (live.pod.metadata.uid, "main", 1)

    async def test_a_program_that_is_gone_in_the_last_moment_ends_with_127(self, world):
        program = world.directory / "program"
        program.write_text("#!/no/such/interpreter\n")
        program.chmod(0o755)
        live = await world.runtime.start_pod(pod(world, "web", {"name": "main", "command": [str(program)]}))
        assert (await world.runtime.next_ended())[2] == 127
        log = directory(world, live.pod).parent / "main.log"
        assert log.read_text() == f"lastcall: {program}: No such file or directory\n"

    async def test_idle_containers_cost_nothing(self, world):
        for number in range(5):
            await started(world, name=f"pod-{number}")
        costs = [await cost_of_a_second()]
        while costs[-1] >= 0.1 and len(costs) < 10:  # what has begun before may not be over
            costs.append(await cost_of_a_second())
        assert costs[-1] < 0.1, costs

    async def test_a_refused_pod_leaves_nothing(self, world):
        with pytest.raises(InvalidInput):
            await world.runtime.start_pod(pod(world, "web", {"name": "main"}))
        assert list((world.directory.parent / "state" / "pods").iterdir()) == []


class TestHooks:
    async def test_the_containers_path_is_for_its_own_programs_only(self, world):
        live, _, _ = await started(
            world,
            env=[{"name": "PATH", "value": "/nowhere"}],
            command=["/bin/sh", "-c", "echo ready >> $OUT; while :; do :; done"],
        )
        hook = LifecycleHandler(exec=ExecAction(command=("/bin/sh", "-c", "echo $PATH; exit 1")))
        assert (await world.runtime.run_hook(live, "main", hook, 60)).message == "exec: exit code 1: /nowhere"

    async def test_a_command_that_cannot_be_is_told(self, world):
        live, _, _ = await started(world)
        hook = LifecycleHandler(exec=ExecAction(command=("echo", "a\0b")))
        assert (await world.runtime.run_hook(live, "main", hook, 60)).message == "exec: embedded null byte"

    async def test_children_of_a_hook_end_with_it(self, world):
        live, _, _ = await started(world)
        hook = shell('sleep 1000 & echo $! >> "$OUT.hook"; exit 0')
        assert (await world.runtime.run_hook(live, "main", hook, 60)).ok
        await eventually(lambda: not alive(int(told(world, "web.main.hook")[0])))

    async def test_children_of_a_hook_end_at_its_limit(self, world):
        live, _, _ = await started(world)
        hook = shell('sleep 1000 & echo $! >> "$OUT.hook"; wait')
        assert (await world.runtime.run_hook(live, "main", hook, 4)).timed_out
        await eventually(lambda: not alive(int(told(world, "web.main.hook")[0])))

    async def test_a_hook_that_talks_much_is_not_held_up_and_its_last_words_are_quoted(self, world):
        live, _, _ = await started(world)
        hook = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 9")
        result = await world.runtime.run_hook(live, "main", hook, 60)
        assert result.message.startswith("exec: exit code 9: ")
        assert result.message.endswith("line 19999")
        assert len(result.message) < 1100

    async def test_a_hook_that_dies_of_a_signal_tells_it_as_shells_do(self, world):
        live, _, _ = await started(world)
        assert (await world.runtime.run_hook(live, "main", shell("kill -KILL $$"), 60)).message == "exec: exit code 137"

    async def test_hooks_leave_no_descriptor_open(self, world):
        live, _, _ = await started(world)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for script in ("exit 0", "exit 1", "sleep 5"):
            await world.runtime.run_hook(live, "main", shell(script), 0.5)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
