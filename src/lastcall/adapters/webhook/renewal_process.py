"""Asks ``material_renewal`` in a process that ends: its library takes 10 MiB, and is of use every two months."""

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from lastcall.adapters.webhook.serving_material import Renewal, ServingMaterial
from lastcall.aio import timeout
from lastcall.errors import Unavailable

MODULE = "lastcall.adapters.webhook.material_renewal"
SECONDS = 60.0
"""Until it counts as hanging; it takes half a second of CPU."""

_MOST_SAID = 500


async def renew_in_process(
    found: ServingMaterial | None, path_token: str, names: Sequence[str], now: datetime
) -> Renewal:
    """``material_renewal.renew_material``. Unavailable if there is no answer. No part of the process survives this call."""
    question = {"found": found, "pathToken": path_token, "names": names, "now": now}
    try:
        async with timeout(SECONDS):
            code, output, said = await _run_process(msgspec.json.encode(question))
    except TimeoutError:
        raise Unavailable(f"no certificate was made within {SECONDS:g} s") from None
    except OSError as error:  # no process, memory or descriptor is left
        raise Unavailable(f"{MODULE} cannot be started: {error}") from error
    if code:
        words = " ".join(said.decode(errors="replace").split())[-_MOST_SAID:]
        raise Unavailable(f"{MODULE} failed with {code}: {words}")
    return msgspec.json.decode(output, type=Renewal)


async def _run_process(question: bytes) -> tuple[int, bytes, bytes]:
    """Exit code, output and error output. Keys go over standard input, and are not in a traceback."""
    pipe: Any = asyncio.subprocess.PIPE
    command = (sys.executable, "-P", "-s", "-m", MODULE)
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    process = await asyncio.create_subprocess_exec(*command, env=path, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        output, said = await process.communicate(question)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, output, said
