"""Clients of the demo's shop: a request every few milliseconds; lost ones are counted."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from lastcall.aio import OrderedTaskGroup, timeout
from lastcall.ports.node import Clock
from lastcall_lab.traffic.listen_addresses import ListenAddress

_REQUEST = b"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
_PATIENCE = 5.0


@dataclass
class RequestCounts:
    """Requests so far; ``lost`` by reason."""

    sent: int = 0
    good: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def lost_requests(self) -> int:
        """The number of lost requests."""
        return sum(self.lost.values())

    def count_lost(self, why: str) -> None:
        """Counts a lost request."""
        self.lost[why] = self.lost.get(why, 0) + 1


class RequestLoad:
    """Sends ``rate`` requests per second, each on its own connection, to addresses that are read each time."""

    def __init__(self, doors: Callable[[], list[ListenAddress]], clock: Clock, *, rate: float) -> None:
        self._doors = doors
        self._clock = clock
        self._pause = 1.0 / rate
        self.counts = RequestCounts()

    async def run(self) -> None:
        """Runs until cancelled; requests under way are aborted then and not counted."""
        under_way = OrderedTaskGroup()
        due = self._clock.boottime()
        try:
            while True:
                doors = self._doors()
                if doors:
                    door = doors[self.counts.sent % len(doors)]
                    self.counts.sent += 1
                    under_way.start(self._send_request(door), "request")
                due += self._pause
                await self._clock.sleep(due - self._clock.boottime())
        finally:
            await under_way.cancel()

    async def _send_request(self, door: ListenAddress) -> None:
        try:
            async with timeout(_PATIENCE):
                answer = await _request_shop(door)
        except TimeoutError:
            self.counts.count_lost("no answer in time")
        except OSError as error:
            self.counts.count_lost((error.strerror or type(error).__name__).lower())
        else:
            if answer.startswith(b"HTTP/1.") and answer[9:12] == b"200":
                self.counts.good += 1
            else:
                self.counts.count_lost(
                    "the connection was closed" if not answer else answer[9:12].decode(errors="replace")
                )


async def _request_shop(door: ListenAddress) -> bytes:
    reader, writer = await asyncio.open_connection(door.address, door.port)
    try:
        writer.write(_REQUEST)
        await writer.drain()
        return await reader.read()
    finally:
        writer.close()
