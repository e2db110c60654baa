"""What every runtime promises to the lab's kubelet (``lab.kubelet.runtime.NodeRuntime``)."""

import asyncio

import pytest
from support.runtimes.actor_world import actors_world
from support.runtimes.pod_scripts import OBEDIENT, STUBBORN, container, pod, says, shell
from support.runtimes.world_fixture import _containerd, _processes

from lastcall.errors import InvalidInput, LastcallError, Unavailable

SOON = 60.0


@pytest.fixture(
    params=["processes", "actors", pytest.param("containerd", marks=pytest.mark.xdist_group("containerd-contract"))]
)
async def world(request, tmp_path):
    opened = {"processes": _processes, "containerd": _containerd, "actors": actors_world}[request.param]
    async with opened(tmp_path) as world:
        yield world


async def created(world, *containers, name="web", init=()):
    made = pod(world, name, *containers, init=init)
    return made, await world.runtime.create_sandbox(made)


async def launch(world, made, name, attempt=0):
    container = next(one for one in (*(made.spec.init_containers or ()), *made.spec.containers) if one.name == name)
    return await asyncio.wait_for(world.runtime.launch_container(made, container, attempt=attempt), SOON)


async def ended(world):
    return await asyncio.wait_for(world.runtime.next_ended(), SOON)


async def running(world):
    return {live.pod.metadata.name: sorted(live.containers) for live in await world.runtime.refresh_pods()}


async def test_a_created_pod_has_an_address_of_its_own_and_runs_nothing(world):
    _, one = await created(world, container("main", OBEDIENT), name="one")
    _, two = await created(world, container("main", OBEDIENT), name="two")
    assert one.containers == two.containers == {}
    assert one.pod.status.pod_ip.startswith("127.")
    assert one.pod.status.pod_ip != two.pod.status.pod_ip
    assert await running(world) == {}


async def test_it_is_created_once(world):
    made, first = await created(world, container("main", OBEDIENT))
    run = await launch(world, made, "main")
    again = await world.runtime.create_sandbox(made)
    assert again.pod.status.pod_ip == first.pod.status.pod_ip
    assert again.containers == {"main": run}


async def test_containers_run_when_they_are_launched(world):
    made, _ = await created(world, container("one", OBEDIENT), container("two", OBEDIENT))
    one = await launch(world, made, "one")
    assert await running(world) == {"web": ["one"]}
    two = await launch(world, made, "two")
    (live,) = await world.runtime.refresh_pods()
    assert live.containers == {"one": one, "two": two}


async def test_a_container_runs_again_under_another_id(world):
    made, _ = await created(world, container("main", "exit 3"))
    runs = []
    for attempt in range(3):
        runs.append(await launch(world, made, "main", attempt))
        assert await ended(world) == (made.metadata.uid, "main", 3)
    assert len(set(runs)) == 3


async def test_what_runs_is_not_launched_again(world):
    made, _ = await created(world, container("main", OBEDIENT))
    await launch(world, made, "main")
    with pytest.raises(InvalidInput, match="runs already"):
        await launch(world, made, "main", attempt=1)


async def test_what_was_not_created_is_not_launched(world):
    made = pod(world, "web", container("main", OBEDIENT))
    with pytest.raises(Unavailable):
        await launch(world, made, "main")


async def test_the_end_of_an_init_container_is_told(world):
    made, _ = await created(world, container("main", OBEDIENT), init=[container("before", "exit 0")])
    await launch(world, made, "before")
    assert await ended(world) == (made.metadata.uid, "before", 0)
    await launch(world, made, "main")
    assert await running(world) == {"web": ["main"]}


async def test_the_containers_of_a_pod_end_by_themselves(world):
    made, _ = await created(world, container("one", OBEDIENT), container("two", STUBBORN))
    one = await launch(world, made, "one")
    await launch(world, made, "two")
    if world.name != "actors":  # which play scripts and write nothing
        await says(world, "web.one", "ready")
        await says(world, "web.two", "ready")
    assert await asyncio.wait_for(world.runtime.stop_container(one, 30), SOON) == 7
    assert await running(world) == {"web": ["two"]}
    await world.runtime.remove_pod(made.metadata.uid)
    assert await running(world) == {}


async def test_a_new_kubelet_finds_what_runs_and_hears_of_what_has_ended(world):
    made, first = await created(world, container("one", OBEDIENT), container("two", "exit 3"))
    one = await launch(world, made, "one")
    await launch(world, made, "two")
    assert await ended(world) == (made.metadata.uid, "two", 3)
    await world.restarted()
    world.runtime.repeat_ends()
    assert await ended(world) == (made.metadata.uid, "two", 3)
    again = await world.runtime.create_sandbox(made)
    assert again.containers == {"one": one}
    assert again.pod.status.pod_ip == first.pod.status.pod_ip
    assert await launch(world, made, "two", attempt=1)


async def test_a_finished_pod_can_be_created_anew(world):
    made, _ = await created(world, container("main", "exit 0"))
    await launch(world, made, "main")
    await ended(world)
    live = await world.runtime.create_sandbox(made)
    await world.runtime.tear_down_pod(live)
    await world.runtime.remove_pod(made.metadata.uid)
    made, _ = await created(world, container("main", OBEDIENT))
    await launch(world, made, "main")
    assert await running(world) == {"web": ["main"]}


async def test_probes_ask_what_runs(world):
    made, live = await created(world, container("main", OBEDIENT))
    assert not (await world.runtime.probe(live, "main", shell("true"), 60)).ok
    run = await launch(world, made, "main")
    (live,) = await world.runtime.refresh_pods()
    assert live.containers == {"main": run}
    assert (await world.runtime.probe(live, "main", shell("true"), 60)).ok


async def test_a_hook_ends_with_its_container(world):
    made, _ = await created(world, container("main", OBEDIENT))
    run = await launch(world, made, "main")
    (live,) = await world.runtime.refresh_pods()
    hook = asyncio.create_task(world.runtime.run_hook(live, "main", shell("sleep 1000"), 600))
    await asyncio.sleep(0.5)  # while it runs; if it is later, it finds no container, and fails too
    await world.runtime.stop_container(run, 60)
    assert not (await asyncio.wait_for(hook, SOON)).ok


async def test_each_run_has_a_log(world):
    script = "exit 3" if world.name == "actors" else "echo hello at $(cat /proc/uptime); exit 3"
    made, _ = await created(world, container("main", script))
    for attempt in range(2):
        await launch(world, made, "main", attempt)
        await ended(world)
    logs = []
    for attempt in range(2):
        lines, end = await world.runtime.open_log(made, "main", attempt).read(0)
        logs.append(b"".join(line for _, line in lines))
        assert all(at > 1_600_000_000 for at, _ in lines)
        assert (await world.runtime.open_log(made, "main", attempt).read(end))[0] in ([], ())
    assert all(logs)
    if world.name != "actors":
        assert logs[0] != logs[1]
        assert logs[0].startswith(b"hello at ")
    assert (await world.runtime.open_log(made, "main", 7).read(0))[0] in ([], ())


async def test_programs_run_beside_a_container_or_are_refused(world):
    made, _ = await created(world, container("main", OBEDIENT))
    await launch(world, made, "main")
    (live,) = await world.runtime.refresh_pods()
    with pytest.raises(InvalidInput):
        await world.runtime.execute(live, "other", ["true"], stdin=False, tty=False)
    if world.name == "actors":
        with pytest.raises(InvalidInput):
            await world.runtime.execute(live, "main", ["true"], stdin=False, tty=False)
        return
    command = ["sh", "-c", "echo out; echo err >&2; exit 5"]
    execution = await world.runtime.execute(live, "main", command, stdin=False, tty=False)
    said = {1: b"", 2: b""}
    async for channel, data in execution.output():
        said[channel] += data
    assert said == {1: b"out\n", 2: b"err\n"}
    assert await asyncio.wait_for(execution.wait(), SOON) == 5


@pytest.fixture
async def execute(world):
    """Runs programs in a container."""
    if world.name == "actors":
        pytest.skip("actors run no programs")
    made, _ = await created(world, container("main", OBEDIENT))
    await launch(world, made, "main")
    (live,) = await world.runtime.refresh_pods()

    async def execute(script, **options):
        return await world.runtime.execute(
            live, "main", ["sh", "-c", script], **{"stdin": True, "tty": False, **options}
        )

    return execute


async def whole(execution):
    """All that it says, and its exit code."""
    async with asyncio.timeout(SOON):
        said = b"".join([data async for _, data in execution.output()])
        return said, await execution.wait()


async def test_a_program_reads_its_input_to_the_end(execute):
    text = b"to be said again\n" * 20_000
    execution = await execute("cat; exit 3")
    reading = asyncio.create_task(whole(execution))
    await execution.write(text)
    execution.end_input()
    assert await reading == (text, 3)


async def test_what_a_program_says_comes_at_once(execute):
    execution = await execute("read name; echo hello $name; read rest; echo bye >&2")
    output = execution.output()
    await execution.write(b"you\n")
    assert await asyncio.wait_for(anext(output), SOON) == (1, b"hello you\n")
    execution.end_input()
    assert await asyncio.wait_for(anext(output), SOON) == (2, b"bye\n")
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(output), SOON)
    assert await execution.wait() == 0


async def test_a_program_without_input_reads_nothing(execute):
    execution = await execute("cat; echo over", stdin=False)
    assert await whole(execution) == (b"over\n", 0)


async def test_a_program_with_a_terminal(execute):
    execution = await execute("test -t 0 && test -t 1 && test -t 2 && echo all; cat; exit 4", tty=True)
    reading = asyncio.create_task(whole(execution))
    await execution.write(b"typed\n")
    execution.end_input()
    said, code = await reading
    assert code == 4
    lines = said.replace(b"\r\n", b"\n").split(b"\n")
    assert b"all" in lines
    assert lines.count(b"typed") == 2, "by the terminal's echo and by cat"


async def test_a_terminal_has_a_size(execute):
    execution = await execute("while ! [ \"$(stty size 2>&1)\" = '50 132' ]; do sleep 0.05; done; echo wide", tty=True)
    execution.resize(132, 50)
    said, code = await whole(execution)
    assert (said.strip(), code) == (b"wide", 0)


async def test_a_program_in_a_container_that_has_ended(world):
    if world.name == "actors":
        pytest.skip("actors run no programs")
    made, _ = await created(world, container("main", OBEDIENT))
    run = await launch(world, made, "main")
    (live,) = await world.runtime.refresh_pods()
    await world.runtime.stop_container(run, 5)
    with pytest.raises(InvalidInput):
        await world.runtime.execute(live, "main", ["true"], stdin=False, tty=False)


async def test_a_program_is_let_go(execute):
    execution = await execute("echo begun; read nothing")
    output = execution.output()
    assert await asyncio.wait_for(anext(output), SOON) == (1, b"begun\n")
    execution.kill()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(output), SOON)


async def test_what_a_runtime_cannot_do_is_said(world):
    if world.name == "actors":
        pytest.skip("actors can do everything")
    broken = container("main", OBEDIENT, image="no/such:image") | {"command": ["no-such-program"]}
    made, _ = await created(world, broken)
    with pytest.raises(LastcallError, match=r"no-such-program|no/such:image"):
        await launch(world, made, "main")
    assert await running(world) == {}
