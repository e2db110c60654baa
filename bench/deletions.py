"""When objects were deleted, as a watch tells it."""

import asyncio
import contextlib
import re
import time

REVISION = re.compile(rb'"resourceVersion":"([0-9]+)"')
"""Of an object in a line of a watch: its first one is the object's own."""


class Deletions:
    """Reads a watch, and notes when it heard of each deletion (``time.perf_counter``).

    A server ends the watch of a reader who is too slow: then another begins.
    """

    def __init__(self, watch, revision):
        self.times = []
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._follow(watch, revision))

    async def heard_of(self, count):
        """Until so many have been."""
        while len(self.times) < count:
            assert not self._task.done(), f"the watch ended after {len(self.times)} of {count}"
            self._changed.clear()
            await self._changed.wait()

    async def close(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self, watch, revision):
        try:
            while True:
                revision = await self._read(await watch(revision), revision)
        finally:
            self._changed.set()

    async def _read(self, stream, revision):
        """Until the stream ends; the last revision that it has told of."""
        rest = b""
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                self.times += [time.perf_counter()] * sum(line.startswith(b'{"type":"DELETED"') for line in lines)
                if lines:
                    revision = REVISION.search(lines[-1])[1].decode()
                self._changed.set()
        return revision


class Gone:
    """What has gone of the pods and attachments of one turn."""

    def __init__(self, pods, attachments):
        self.pods = pods
        self.attachments = attachments

    async def all(self, case):
        """Until the last of both has."""
        await asyncio.gather(self.pods.heard_of(case.pods), self.attachments.heard_of(case.attachments))
