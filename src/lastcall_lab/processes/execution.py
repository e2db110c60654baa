"""A program that runs beside a container (``kubectl exec``)."""

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import AsyncIterator

from lastcall_lab.processes.command_spec import ContainerCommand, find_program
from lastcall_lab.processes.process import ForeignProcess

STDOUT, STDERR = 1, 2
_CHUNK = 65536


class ProcessExecution:
    """Starts when it is made, in a session of its own; OSError if it cannot start.

    With ``tty`` it has a terminal, whose output is all STDOUT; without ``stdin`` it reads nothing. It dies with this
    process: setpriv(1) sets PR_SET_PDEATHSIG.
    """

    def __init__(self, command: ContainerCommand, *, stdin: bool, tty: bool) -> None:
        self._chunks: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._readers: dict[int, int] = {}
        self._terminal = -1
        self._input = -1
        if tty:
            self._popen = self._on_terminal(command)
        else:
            self._popen = self._on_pipes(command, stdin=stdin)
        self._process = ForeignProcess.from_pid(self._popen.pid)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.descriptor, self._kill_rest)
        for descriptor in self._readers:
            os.set_blocking(descriptor, False)
            loop.add_reader(descriptor, self._read, descriptor)

    async def write(self, data: bytes) -> None:
        """Writes to its standard input; data that it has not read when it ends is dropped."""
        while data and self._input >= 0 and not self._ended.is_set():
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.01)
            except OSError:
                return

    def end_input(self) -> None:
        """Closes its standard input; a terminal gets its end-of-file character."""
        if self._terminal >= 0:
            with contextlib.suppress(OSError):
                os.write(self._terminal, b"\x04")
        elif self._input >= 0:
            os.close(self._input)
            self._input = -1

    def resize(self, width: int, height: int) -> None:
        """Resizes its terminal, if it has one."""
        if self._terminal >= 0:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yields STDOUT or STDERR with the data of each, until both have ended."""
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    async def wait(self) -> int:
        """Its exit code; 128 + n after signal n."""
        await self._ended.wait()
        code = self._popen.returncode
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        """Kills its process group. Until the leader is reaped, the group's number is not reused."""
        if self._ended.is_set():
            return
        try:
            os.killpg(self._popen.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # it has not made its session yet
            self._process.send_signal(signal.SIGKILL)

    # -- within --------------------------------------------------------------------------------------------------------

    def _on_pipes(self, command: ContainerCommand, *, stdin: bool) -> "subprocess.Popen[bytes]":
        popen = subprocess.Popen(
            _exec_arguments(command, terminal=False),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=command.env,
            cwd=command.directory,
            bufsize=0,
        )
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._readers = {os.dup(popen.stdout.fileno()): STDOUT, os.dup(popen.stderr.fileno()): STDERR}
        popen.stdout.close()
        popen.stderr.close()
        if popen.stdin:
            self._input = os.dup(popen.stdin.fileno())
            popen.stdin.close()
            os.set_blocking(self._input, False)
        return popen

    def _on_terminal(self, command: ContainerCommand) -> "subprocess.Popen[bytes]":
        self._terminal, theirs = os.openpty()
        try:
            popen = subprocess.Popen(
                _exec_arguments(command, terminal=True),
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env={"TERM": "xterm", **command.env},
                cwd=command.directory,
            )
        except BaseException:
            os.close(self._terminal)
            raise
        finally:
            os.close(theirs)
        self._readers = {self._terminal: STDOUT}
        self._input = self._terminal
        return popen

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the terminal's other side is closed
            data = b""
        if data:
            self._chunks.put_nowait((self._readers[descriptor], data))
        else:
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        del self._readers[descriptor]
        if descriptor == self._terminal:
            self._terminal = self._input = -1
        os.close(descriptor)
        if not self._readers:
            self._chunks.put_nowait(None)

    def _kill_rest(self) -> None:
        """Kills the rest of its group after its end, so that the output ends."""
        asyncio.get_running_loop().remove_reader(self._process.descriptor)
        self.kill()
        self._process.close()
        self._popen.wait()
        self._ended.set()
        if self._input >= 0 and self._input != self._terminal:
            os.close(self._input)
            self._input = -1


def _exec_arguments(command: ContainerCommand, *, terminal: bool) -> list[str]:
    """Its command line: env(1) restores default signals; setsid(1) makes the session with its terminal."""
    options = ["--pdeathsig=KILL"]
    if command.user:
        uid, gid = command.user
        options += [f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    setsid = [find_program("setsid"), *(["--ctty"] if terminal else [])]
    return [
        find_program("env"),
        "--default-signal",
        *setsid,
        *command.enter_arguments,
        find_program("setpriv"),
        *options,
        "--",
        *command.argv,
    ]
