"""A runtime that hangs, as a process does that is stopped by SIGSTOP: calls are taken and not answered."""

from lastcall.aio import Signal
from lastcall.lab.actors import ActorRuntime


class HangingRuntime(ActorRuntime):
    """Answers nothing while it hangs; its containers go on."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._hangs, self._resumed = False, Signal()

    def hang(self):
        self._hangs = True

    def resume(self):
        self._hangs = False
        self._resumed.set()

    async def _awake(self):
        while self._hangs:
            await self._resumed.next()

    async def ping(self):
        await self._awake()

    async def refresh(self):
        await self._awake()
        return await super().refresh()

    async def look_again(self, live):
        await self._awake()
        return await super().look_again(live)

    async def stop(self, container_id, grace):
        await self._awake()
        code = await super().stop(container_id, grace)
        await self._awake()
        return code

    async def kill(self, container_id):
        await self._awake()
        await super().kill(container_id)

    async def finish(self, live):
        await self._awake()
        await super().finish(live)
