"""Asks the API server again within bounds: it may be away for a moment, and other programs write the same objects."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lastcall.errors import Conflict, TooManyRequests, Unavailable
from lastcall.ports.node import Clock

_T = TypeVar("_T")

_ATTEMPTS = 6
"""So often something is asked for: over half a minute, the time that an API server takes to start again."""

_PAUSE = 1.0
"""Seconds before the second attempt without an answer; doubled each time."""


async def ask_patiently(ask: Callable[[], Awaitable[_T]], clock: Clock) -> _T:
    """What ``ask`` returns, which reads before it writes: after a Conflict it is called again at once.

    After Unavailable and TooManyRequests it is called again after a pause. Raises the last error of six, and any other
    at once.
    """
    pause = _PAUSE
    for left in reversed(range(_ATTEMPTS)):
        try:
            return await ask()
        except Conflict:
            if not left:
                raise
        except (Unavailable, TooManyRequests):
            if not left:
                raise
            await clock.sleep(pause)
            pause *= 2
    raise AssertionError("the last attempt returns or raises")
