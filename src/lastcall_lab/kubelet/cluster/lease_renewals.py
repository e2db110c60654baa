"""Who renews a node's lease between two requests of its kubelet."""

from typing import Protocol

from lastcall.ports.node import Clock


class LeaseRenewals(Protocol):
    """Of one node's lease."""

    async def wait_until_due(self, seconds: float) -> None:
        """The kubelet has renewed the lease. Returns when it is to do so again: after ``seconds``, or later.

        Later only if all that others see of the lease meanwhile is as if it had been renewed every ``seconds``.
        """
        ...


class KubeletRenewals:
    """The kubelet renews it each time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def wait_until_due(self, seconds: float) -> None:
        """After ``seconds``."""
        await self._clock.sleep(seconds)
