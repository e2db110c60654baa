"""A web server for pods of the lab, and clients of its Service on short and on kept connections."""

import asyncio
import itertools

from lastcall.aio import OrderedTaskGroup, timeout

SERVER = """
import asyncio, os, signal

async def main():
    ending, open_ = asyncio.Event(), set()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)

    async def serve(reader, writer):
        open_.add(writer)
        try:
            while await reader.readuntil(b"\\r\\n\\r\\n"):
                await asyncio.sleep(0.02)
                close = ending.is_set()
                writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n" + b"Connection: close\\r\\n" * close + b"\\r\\nok")
                await writer.drain()
                if close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            open_.discard(writer)
            writer.close()

    server = await asyncio.start_server(serve, os.environ["POD_IP"], 18080)
    await ending.wait()
    server.close()
    for _ in range(40):
        if not open_:
            break
        await asyncio.sleep(0.05)

asyncio.run(main())
"""
"""On SIGTERM it accepts no connection any more, ends each kept one with its next answer, and exits, as servers should."""

REQUEST = b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n"


class HttpLoad:
    """``rate`` requests a second, half of them on ``kept`` connections; ``doors()`` are the addresses of the Service.

    A request on a kept connection that ends before any answer is sent once more, on a new one, as HTTP clients do.
    """

    def __init__(self, doors, *, rate=200, kept=10):
        self._doors = doors
        self._rate, self._kept = rate, kept
        self._turn = itertools.count()
        self.sent, self.answered, self.lost = 0, 0, []

    async def run(self):
        """Until it is cancelled; the requests under way are finished then."""
        stop, work = asyncio.Event(), OrderedTaskGroup()
        clients = [work.start(self._keep(stop), "kept connection") for _ in range(self._kept)]
        clients.append(work.start(self._send_short(stop, work), "short connections"))
        try:
            await asyncio.Event().wait()
        finally:
            stop.set()
            await asyncio.gather(*clients)

    async def _send_short(self, stop, work):
        pause, due = 2 / self._rate, asyncio.get_running_loop().time()
        requests = []
        while not stop.is_set():
            requests.append(work.start(self._request_once(), "request"))
            due += pause
            await asyncio.sleep(due - asyncio.get_running_loop().time())
        await asyncio.gather(*requests)

    async def _request_once(self):
        self.sent += 1
        await self._count(self._on_new_connection())

    async def _on_new_connection(self):
        reader, writer = await self._connect()
        try:
            return await self._ask(reader, writer)
        finally:
            writer.close()

    async def _keep(self, stop):
        pause = 2 * self._kept / self._rate
        connection = None
        while not stop.is_set():
            self.sent += 1
            connection = await self._count(self._on_kept(connection))
            await asyncio.sleep(pause)
        if connection:
            connection[1].close()

    async def _on_kept(self, connection):
        """The connection for the next request; None if the server has ended it."""
        if connection:
            try:
                return await self._ask_and_keep(*connection)
            except (EOFError, ConnectionError) as error:
                if getattr(error, "partial", b""):
                    raise  # the answer had begun
        return await self._ask_and_keep(*await self._connect())

    async def _ask_and_keep(self, reader, writer):
        head = b"Connection: close"
        try:
            head = await self._ask(reader, writer)
        finally:
            if b"connection: close" in head.lower():
                writer.close()
        return None if writer.is_closing() else (reader, writer)

    async def _connect(self):
        doors = self._doors()
        return await asyncio.open_connection(*doors[next(self._turn) % len(doors)])

    async def _ask(self, reader, writer):
        writer.write(REQUEST)
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise OSError(head.partition(b"\r\n")[0].decode())
        await reader.readexactly(2)
        return head

    async def _count(self, request):
        try:
            async with timeout(10):
                answer = await request
        except (OSError, EOFError, TimeoutError) as error:
            self.lost.append(repr(error))
            return None
        self.answered += 1
        return answer
