"""Runs a module of Python as a process that answers one question."""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

from lastcall.errors import Unavailable


async def run_module(
    module: str, question: bytes, environment: Mapping[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Exit code, output and error output of one run. No part of the process survives this call.

    ``question`` goes over standard input: secrets are not in the arguments, which all users can read. ``environment`` is
    all that the process gets of it, with our PYTHONPATH. Unavailable if the process cannot be started.
    """
    command = (sys.executable, "-P", "-s", "-m", module)
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    pipe: Any = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env={**path, **(environment or {})}, stdin=pipe, stdout=pipe, stderr=pipe
        )
    except OSError as error:  # no process, memory or descriptor is left
        raise Unavailable(f"{module} cannot be started: {error}") from error
    try:
        output, said = await process.communicate(question)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, output, said
