"""A connection between servers that holds back what one of them sends."""

import asyncio
import contextlib

from lastcall.aio import cancel_and_wait


class SlowLink:
    """Between a master and a replica: stops the master's data on request, and lets confirmations through."""

    def __init__(self, master):
        self.master, self.open, self._tasks, self._writers = master, asyncio.Event(), [], []
        self.open.set()

    async def start(self, port):
        self._server = await asyncio.start_server(self._serve, "127.63.7.77", 0)
        self.master_port, self.port = port, self._server.sockets[0].getsockname()[1]

    async def end(self):
        self._server.close()
        await cancel_and_wait(*self._tasks)
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0.01)

    async def _serve(self, reader, writer):
        self._tasks.append(asyncio.current_task())
        self._writers.append(writer)
        upstream, out = await asyncio.open_connection(self.master, self.master_port)
        self._writers.append(out)
        await asyncio.gather(self._pump(reader, out), self._pump(upstream, writer, gate=self.open))

    async def _pump(self, reader, writer, gate=None):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if gate:
                    await gate.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
