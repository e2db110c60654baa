"""Asks ``material_renewal`` in a process that ends: its library takes 10 MiB, and is of use every two months."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from lastcall.adapters.host.module_process import run_module
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
    """``material_renewal.renew_material``. Unavailable if there is no answer that can be read.

    No part of the process survives this call.
    """
    question = {"found": found, "pathToken": path_token, "names": names, "now": now}
    try:
        async with timeout(SECONDS):
            code, output, said = await run_module(MODULE, msgspec.json.encode(question))
    except TimeoutError:
        raise Unavailable(f"no certificate was made within {SECONDS:g} s") from None
    if code:
        words = " ".join(said.decode(errors="replace").split())[-_MOST_SAID:]
        raise Unavailable(f"{MODULE} failed with {code}: {words}")
    try:
        return msgspec.json.decode(output, type=Renewal)
    except (msgspec.DecodeError, UnicodeError) as error:  # it names the place, not what is there
        raise Unavailable(f"{MODULE} has given an answer that cannot be read: {error}") from error
