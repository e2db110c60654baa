"""A power supply through NUT's command ``upsc``, as ``ports.deadlines.PowerSupply``."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from lastcall.aio import timeout
from lastcall.errors import Unavailable

SECONDS = 3.0
"""Seconds within which the command answers: upsd has the driver's last values."""

MOST_BYTES = 64 * 1024
_LAST_SECONDS = 1.0
_MOST_SAID = 200
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


class UpscCommand:
    """``ups`` is a name as upsc(8) takes it: ``ups``, ``ups@host`` or ``ups@host:port``."""

    def __init__(self, command: str, ups: str) -> None:
        self._command = command
        self._ups = ups

    async def read_variables(self) -> Mapping[str, str]:
        """``ports.deadlines.PowerSupply.read_variables``. No part of the process survives this call."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                self._ups,
                env=_ENVIRONMENT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            raise Unavailable(f"{self._command} cannot be started: {error.strerror}") from error
        try:
            async with timeout(SECONDS):
                output, said = await asyncio.gather(_read_most(process.stdout), _read_most(process.stderr))
                code = await process.wait()
        except TimeoutError:
            raise Unavailable(f"{self._command} {self._ups} said nothing for {SECONDS:g} s") from None
        finally:
            await _end_process(process)
        if code:
            words = " ".join(said.decode(errors="replace").split())[-_MOST_SAID:]
            raise Unavailable(f"{self._command} {self._ups} failed with {code}: {words}")
        lines = (line.partition(": ") for line in output.decode(errors="replace").splitlines())
        return {name.strip(): value.strip() for name, mark, value in lines if mark}


async def _read_most(stream: asyncio.StreamReader | None) -> bytes:
    """What the stream has until its end; Unavailable if that is longer than MOST_BYTES."""
    found = bytearray()
    while stream and (chunk := await stream.read(MOST_BYTES)):
        found += chunk
        if len(found) > MOST_BYTES:
            raise Unavailable(f"upsc says more than {MOST_BYTES} bytes")
    return bytes(found)


async def _end_process(process: asyncio.subprocess.Process) -> None:
    """Kills what still runs of it, and waits for its end: asyncio reports that only after the pipes are read empty."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with timeout(_LAST_SECONDS):
            for stream in (process.stdout, process.stderr):
                while stream and await stream.read(MOST_BYTES):
                    pass
            await process.wait()
