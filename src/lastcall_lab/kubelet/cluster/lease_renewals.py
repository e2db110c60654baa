"""Decides who renews a node's Lease between two requests of its kubelet."""

from typing import Protocol

from lastcall.ports.node import Clock


class LeaseRenewals(Protocol):
    """The renewals of one node's Lease."""

    async def wait_until_due(self, seconds: float) -> None:
        """Called after the kubelet renewed the Lease. Returns when the next renewal is due.

        That is after ``seconds``, or later if all that other clients see of the Lease is the same as with a renewal
        every ``seconds``.
        """
        ...


class KubeletRenewals:
    """The kubelet sends every renewal itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def wait_until_due(self, seconds: float) -> None:
        """Waits ``seconds``."""
        await self._clock.sleep(seconds)
