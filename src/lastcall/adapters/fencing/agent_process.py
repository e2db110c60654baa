"""One run of a fence agent: a session of its own, nothing in its arguments, an environment without secrets, a hard end.

Its files are in memory and have no names: what it is told on standard input, and what it says. Pipes would keep us
waiting for whoever has inherited them.

There are two clocks on it. Ours, and that of ``timeout`` (GNU coreutils), which goes on when the controller is stopped or
killed: a request to switch off ends while we still lead, whatever becomes of us.
"""

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from lastcall.adapters.fencing.agent_words import Ended
from lastcall.errors import TimedOut, Unavailable

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT: Mapping[str, str] = {"PATH": PATH, "LANG": "C", "LC_ALL": "C", "HOME": "/"}
_MOST_READ = 1 << 20


async def run(command: Sequence[str], text: bytes, *, within: float) -> Ended:
    """Unavailable if it cannot be started, TimedOut if there is no time for it. Nothing of it runs on afterwards."""
    if within <= 0:
        raise TimedOut(f"{command[0]}: no time is left for it")
    with memory(text) as told, memory() as out, memory() as said:
        starting = asyncio.ensure_future(_start(command, (told, out, said), within))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _end(await starting)
            raise
        code: int | None = None
        try:
            async with asyncio.timeout(within):
                code = await process.wait()
        except TimeoutError:
            code = None
        finally:
            await _end(process)
        killed = code is None or code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return Ended(None if killed else code, _read(out), _read(said))


async def _start(command: Sequence[str], files: tuple[int, int, int], within: float) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            "timeout",
            "--signal=KILL",
            f"{within:.3f}",
            *command,
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            env=ENVIRONMENT,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be started: {error}") from error


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kills the whole group, also children that the agent has left; the group's number is not used anew so soon."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


@contextmanager
def memory(text: bytes = b"") -> Iterator[int]:
    """A file in memory without a name, read from its beginning. Unavailable if there can be none now."""
    try:
        descriptor = os.memfd_create("lastcall-fence", os.MFD_CLOEXEC)
    except OSError as error:  # no descriptor is left
        raise Unavailable(f"no file in memory: {error}") from error
    try:
        os.pwrite(descriptor, text, 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> str:
    return os.pread(descriptor, _MOST_READ, 0).decode(errors="replace")
