"""What every pod runtime promises of hooks (``ports.PodRuntime``), told by the containers themselves."""

import asyncio
import errno
import os
import time
from contextlib import asynccontextmanager

import pytest
from support.runtimes.pod_scripts import SOON, eventually, says, shell, started, stop, told

from lastcall.aio import cancel_and_wait
from lastcall.model.pods import ExecAction, HTTPGetAction, HTTPHeader, LifecycleHandler, SleepAction

ENDLESS_HOOK = 'exec 9<> "$OUT.open"; echo HOOK >> "$OUT"; while :; do sleep 0.05; done'
"""It has a named pipe open as long as it runs."""


@pytest.fixture
def hook_pipe(world):
    """The named pipe of an ENDLESS_HOOK in ``web.main``."""
    path = world.directory / "web.main.open"
    os.mkfifo(path)
    return path


async def wait_until_closed(pipe):
    """Until no process has it open."""

    def is_closed():
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            return error.errno == errno.ENXIO
        return False

    await eventually(is_closed)


class TestHooks:
    async def test_an_exec_hook_has_ended_before_sigterm(self, world):
        live, main = await started(world)
        result = await world.runtime.run_hook(live, "main", shell('sleep 0.3; echo HOOK >> "$OUT"'), 60)
        assert result.ok
        assert not result.timed_out
        assert await stop(world, main, 60) == 7
        assert told(world, "web.main") == ["ready", "HOOK", "TERM"]

    async def test_an_exec_hook_that_fails_tells_its_exit_code_and_output(self, world):
        live, _ = await started(world)
        result = await world.runtime.run_hook(live, "main", shell("echo no such leader; exit 3"), 60)
        assert not result.ok
        assert not result.timed_out
        assert "3" in result.message
        assert "no such leader" in result.message

    async def test_an_exec_hook_whose_program_is_missing_fails(self, world):
        live, _ = await started(world)
        hook = LifecycleHandler(exec=ExecAction(command=("no-such-program",)))
        result = await world.runtime.run_hook(live, "main", hook, 60)
        assert not result.ok
        assert "no-such-program" in result.message

    async def test_an_exec_hook_beyond_its_limit_runs_no_further(self, world, hook_pipe):
        live, main = await started(world)
        begin = time.monotonic()
        result = await world.runtime.run_hook(live, "main", shell(ENDLESS_HOOK), 4)
        assert not result.ok
        assert result.timed_out
        assert result.message
        assert time.monotonic() - begin > 3.9
        await wait_until_closed(hook_pipe)  # containerd kills the process after it has seen that the call is cancelled
        assert told(world, "web.main") == ["ready", "HOOK"]
        assert await stop(world, main, 60) == 7

    async def test_an_exec_hook_whose_caller_is_cancelled_runs_no_further(self, world, hook_pipe):
        live, _ = await started(world)
        running_hook = asyncio.create_task(world.runtime.run_hook(live, "main", shell(ENDLESS_HOOK), 600))
        await says(world, "web.main", "ready", "HOOK")
        # containerd forgets a hook that is cancelled before its shim has told it that the hook runs. The shim starts one
        # after the other and answers in that order, so a second hook's end says that containerd knows of the first.
        assert (await world.runtime.run_hook(live, "main", shell("exit 0"), 60)).ok
        await cancel_and_wait(running_hook)
        await wait_until_closed(hook_pipe)
        assert told(world, "web.main") == ["ready", "HOOK"]

    async def test_a_hook_ends_with_its_container(self, world):
        live, main = await started(world)
        hook = shell('echo HOOK >> "$OUT"; sleep 1000')
        running_hook = asyncio.create_task(world.runtime.run_hook(live, "main", hook, 600))
        await says(world, "web.main", "ready", "HOOK")
        assert await stop(world, main, 60) == 7
        assert not (await asyncio.wait_for(running_hook, SOON)).ok

    async def test_hooks_of_what_is_not_there_fail_without_raising(self, world):
        live, main = await started(world)
        assert not (await world.runtime.run_hook(live, "no-such-container", shell("exit 0"), 60)).ok
        await stop(world, main, 60)
        assert not (await world.runtime.run_hook(live, "main", shell("exit 0"), 60)).ok

    async def test_http_get_by_the_name_of_a_port(self, world):
        async with http_server("204 No Content") as (port, requests):
            live, _ = await started(world, ports=[{"name": "admin", "containerPort": port}])
            hook = http_hook(
                port="admin", path="/leave?now=1", http_headers=(HTTPHeader(name="X-Why", value="last call"),)
            )
            result = await world.runtime.run_hook(live, "main", hook, 60)
        assert result.ok
        assert requests[0].startswith("GET /leave?now=1 HTTP/1.1\r\n")
        assert "x-why: last call\r\n" in requests[0].lower()

    async def test_http_get_answered_by_an_error_fails(self, world):
        async with http_server("503 Not Now") as (port, _):
            live, _ = await started(world)
            result = await world.runtime.run_hook(live, "main", http_hook(port=port), 60)
        assert not result.ok
        assert not result.timed_out
        assert "503" in result.message

    async def test_http_get_that_nobody_answers_is_over_at_its_limit(self, world):
        async with http_server(None) as (port, _):
            live, _ = await started(world)
            result = await asyncio.wait_for(world.runtime.run_hook(live, "main", http_hook(port=port), 1), SOON)
        assert result.timed_out
        assert not result.ok

    async def test_http_get_of_an_unknown_port_fails(self, world):
        live, _ = await started(world)
        result = await world.runtime.run_hook(live, "main", http_hook(port="nowhere"), 60)
        assert not result.ok
        assert "nowhere" in result.message

    async def test_sleep_waits(self, world):
        live, _ = await started(world)
        begin = time.monotonic()
        assert (await world.runtime.run_hook(live, "main", LifecycleHandler(sleep=SleepAction(seconds=1)), 60)).ok
        assert time.monotonic() - begin > 0.9

    async def test_sleep_ends_at_its_limit(self, world):
        live, _ = await started(world)
        hook = LifecycleHandler(sleep=SleepAction(seconds=600))
        result = await asyncio.wait_for(world.runtime.run_hook(live, "main", hook, 0.2), SOON)
        assert result.timed_out
        assert not result.ok


def http_hook(**fields):
    return LifecycleHandler(http_get=HTTPGetAction(host="127.0.0.1", **fields))


@asynccontextmanager
async def http_server(answer):
    """A server on loopback that gives every request this status, or none: its port, and the requests' heads."""
    requests = []

    async def serve(reader, writer):
        try:
            requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if answer is None:
                await reader.read()
            else:
                writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], requests
        await eventually(lambda: bool(requests))
    finally:
        server.close()
