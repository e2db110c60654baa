"""An event loop in a thread of its own, for tests that themselves block."""

import asyncio
import threading
from concurrent.futures import Future


class LoopThread:
    """What lives in such a loop; ``enter`` it. ``_begin`` and ``_end`` run there first and last.

    What still runs there afterwards is cancelled, as at the end of ``asyncio.run``. ``name`` is the thread's. Work may take
    ``seconds``.
    """

    def __init__(self, name, *, seconds):
        self._name, self._seconds = name, seconds

    def __enter__(self):
        loop = Future()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(loop),), daemon=True, name=self._name)
        self._thread.start()
        self._loop = loop.result()
        try:
            self.do(self._begin())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.do(self._end())
        finally:
            self._stop()

    def do(self, work):
        """Runs a coroutine in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(self._seconds)

    def _stop(self):
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    # -- in the loop ---------------------------------------------------------------------------------------------------

    async def _serve(self, loop):
        self._ended = asyncio.Event()
        loop.set_result(asyncio.get_running_loop())
        await self._ended.wait()
