"""preStop hooks of the kind ``exec``: a program in the container's environment, as its user."""

import asyncio
import contextlib
import os
import signal
import subprocess

from lastcall import aio
from lastcall.ports.node import Clock, HookResult
from lastcall_lab.processes.command_spec import ContainerCommand, find_program
from lastcall_lab.processes.container import ProcessContainer
from lastcall_lab.processes.process import ForeignProcess

_SHOWN = 1024
"""Bytes of its last output that the message of a failed hook quotes."""


async def run_exec_hook(
    command: ContainerCommand, container: ProcessContainer, *, limit: float, clock: Clock
) -> HookResult:
    """Runs it until it ends, its container ends or the limit is over; then kills its whole process group."""
    try:
        hook = _RunningHook(command)
    except (OSError, ValueError) as error:
        return HookResult(ok=False, message=f"exec: {error}")
    try:
        reason = await aio.wait_first(hook.ended.wait(), container.ended.wait(), clock.sleep(limit))
    finally:
        hook.kill()
    await hook.ended.wait()
    if reason == 0:
        return hook.result()
    if reason == 1:
        return HookResult(ok=False, message="exec: the container has ended")
    return HookResult(ok=False, timed_out=True, message=f"exec: not done within {limit:g} s{hook.output_tail()}")


class _RunningHook:
    """A running hook, which dies with this process: setpriv(1) sets PR_SET_PDEATHSIG."""

    def __init__(self, command: ContainerCommand) -> None:
        self.ended = asyncio.Event()
        self._output = bytearray()
        self._pipe, outlet = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._popen = _spawn_hook(command, outlet)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(outlet)
        self._process = ForeignProcess.from_pid(self._popen.pid)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.descriptor, self._end)
        loop.add_reader(self._pipe, self._read)

    def kill(self) -> None:
        """Kills the rest of its process group. Until the leader is reaped, the group's number is not reused."""
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def result(self) -> HookResult:
        """The result after it has ended by itself."""
        code = self._popen.returncode
        if code == 0:
            return HookResult(ok=True)
        return HookResult(ok=False, message=f"exec: exit code {code if code > 0 else 128 - code}{self.output_tail()}")

    def output_tail(self) -> str:
        """The end of its output, for a message."""
        text = " ".join(self._output.decode(errors="replace").split())
        return f": {text}" if text else ""

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, 65536)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self._pipe)
        self._output += data
        del self._output[:-_SHOWN]

    def _end(self) -> None:
        self.kill()
        self._read()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._process.descriptor)
        loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._process.close()
        self._popen.wait()
        self.ended.set()


def _spawn_hook(command: ContainerCommand, outlet: int) -> subprocess.Popen[bytes]:
    """Starts it with default signals by env(1): background jobs of a script, for instance, ignore SIGINT."""
    options = ["--pdeathsig=KILL"]
    if command.user:
        uid, gid = command.user
        options += [f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        os.fchown(outlet, uid, gid)  # so that it can be opened again as /dev/stdout
    return subprocess.Popen(
        [
            find_program("env"),
            "--default-signal",
            *command.enter_arguments,
            find_program("setpriv"),
            *options,
            "--",
            *command.argv,
        ],
        stdin=subprocess.DEVNULL,
        stdout=outlet,
        stderr=outlet,
        env=command.env,
        cwd=command.directory,
        start_new_session=True,
    )
