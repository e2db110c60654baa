"""This machine's leases on shared storage, as its sanlock daemon reports them to the command ``sanlock client``."""

import asyncio
import os
from collections.abc import Mapping

from lastcall.adapters.host import sanlock_output
from lastcall.aio import timeout
from lastcall.errors import Unavailable
from lastcall.ports.storage import Lockspace

SECONDS = 3.0
"""Seconds within which the command answers: the daemon does so without reading the storage."""

_MOST_SAID = 300


class Sanlock:
    """``ports.storage.StorageLeases``. The command needs root, or membership in the daemon's group (``sanlock``).

    ``environment`` is added to the command's: SANLOCK_RUN_DIR names another daemon than the machine's.
    """

    def __init__(self, program: str = "sanlock", environment: Mapping[str, str] | None = None) -> None:
        self._program = program
        self._environment = dict(environment or {})

    async def read_lockspace(self, lockspace: str) -> Lockspace:
        """``ports.storage.StorageLeases.read_lockspace``. Reads the status first, so that no age is underestimated."""
        status = sanlock_output.parse_status(lockspace, await self._run_client("status", "-D"))
        return sanlock_output.parse_lockspace(status, await self._run_client("host_status", "-s", lockspace, "-D"))

    async def _run_client(self, action: str, *arguments: str) -> str:
        """Runs the command and returns its output. No part of the process survives this call."""
        pipe, environment = asyncio.subprocess.PIPE, {**os.environ, **self._environment}
        command = (self._program, "client", action, *arguments)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise Unavailable(f"{self._program} cannot be started: {error.strerror}") from error
        try:
            async with timeout(SECONDS):
                output, said = await process.communicate()
        except TimeoutError:
            raise Unavailable(f"sanlock client {action} said nothing for {SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            words = " ".join(said.decode(errors="replace").split())[-_MOST_SAID:]
            raise Unavailable(f"sanlock client {action} failed with {process.returncode}{': ' if words else ''}{words}")
        return output.decode(errors="replace")
