"""One run of a fence agent: own session, no parameters in its arguments, no secrets in its environment, hard end.

Standard input and output are files in memory without names. With pipes, this process would wait for any child of the
agent that inherited them.

Two processes enforce the deadline: this one, and the keeper (``agent_keeper``), which continues when the controller is
stopped or killed. So a power-off ends while this controller is still the leader. The deadline may be extended during
the run, as the leader renews its lease.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lastcall.adapters.fencing.agent_protocol import AgentResult
from lastcall.adapters.host.clock import SystemClock
from lastcall.aio import TimeLimit, timeout
from lastcall.errors import TimedOut, Unavailable

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT: Mapping[str, str] = {"PATH": PATH, "LANG": "C", "LC_ALL": "C", "HOME": "/"}
_KEEPER = str(Path(__file__).with_name("agent_keeper.py"))
_MOST_READ = 1 << 20


class RunDeadline:
    """The deadline of one run, on the clock's boottime; it may be extended."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._began = self._until = 0.0
        self._limit: TimeLimit | None = None
        self._heard = self._tell = -1

    @property
    def granted_seconds(self) -> float:
        """The seconds that were granted so far, extensions included."""
        return self._until - self._began

    def extend_order(self, until: float) -> None:
        """Extends the deadline to ``until``; ignored if the run or its time is over, or if that is no later."""
        now = self._clock.boottime()
        if self._limit is None or self._limit.expired() or now >= self._until or until <= self._until:
            return
        self._until = until
        with suppress(OSError):  # the keeper has just ended
            os.write(self._tell, f"{until:.3f}\n".encode())
        self._limit.reschedule(asyncio.get_running_loop().time() + until - now)

    @contextmanager
    def start_clock(self, within: float) -> Iterator[None]:
        """Sets the deadline to ``within`` seconds from now. Raises Unavailable if no descriptor is left for it."""
        self._began = self._clock.boottime()
        self._until = self._began + within
        try:
            self._heard, self._tell = os.pipe()
        except OSError as error:  # no descriptor is left
            raise Unavailable(f"no pipe: {error}") from error
        try:
            yield
        finally:
            os.close(self._heard)
            os.close(self._tell)

    async def wait_for_exit(self, process: asyncio.subprocess.Process) -> int | None:
        """The exit code; None if the process has not ended by the deadline."""
        try:
            async with timeout(self._until - self._clock.boottime()) as self._limit:
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            self._limit = None

    def supervised_command(self, command: Sequence[str]) -> tuple[Sequence[str], int]:
        """The command line with the keeper, and the descriptor that it needs."""
        keeper = (sys.executable, "-I", "-S", _KEEPER, str(self._heard), f"{self._until:.3f}")
        return (*keeper, *command), self._heard


async def run_agent(
    command: Sequence[str], text: bytes, *, within: float, term: RunDeadline | None = None
) -> AgentResult:
    """Runs the agent and kills whatever remains of it. Unavailable: cannot be started; TimedOut: no time is left."""
    if within <= 0:
        raise TimedOut(f"{command[0]}: no time is left for it")
    term = term or RunDeadline()
    with memory_file(text) as told, memory_file() as out, memory_file() as said, term.start_clock(within):
        starting = asyncio.ensure_future(_start_process(command, (told, out, said), term))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _kill_group(await starting)
            raise
        try:
            code = await term.wait_for_exit(process)
        finally:
            await _kill_group(process)
        killed = code is None or code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return AgentResult(None if killed else code, _read_text(out), _read_text(said))


async def _start_process(
    command: Sequence[str], files: tuple[int, int, int], term: RunDeadline
) -> asyncio.subprocess.Process:
    kept, descriptor = term.supervised_command(command)
    try:
        return await asyncio.create_subprocess_exec(
            *kept,
            pass_fds=(descriptor,),
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            env=ENVIRONMENT,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be started: {error}") from error


async def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Kills the whole process group, orphaned children included; its number is not reused so soon."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


@contextmanager
def memory_file(text: bytes = b"") -> Iterator[int]:
    """Returns a file in memory without a name, positioned at its start. Raises Unavailable if none can be made."""
    try:
        descriptor = os.memfd_create("lastcall-fence", os.MFD_CLOEXEC)
    except OSError as error:  # no descriptor is left
        raise Unavailable(f"no file in memory: {error}") from error
    try:
        os.pwrite(descriptor, text, 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_text(descriptor: int) -> str:
    return os.pread(descriptor, _MOST_READ, 0).decode(errors="replace")
