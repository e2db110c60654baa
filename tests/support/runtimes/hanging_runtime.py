"""A runtime that hangs, as a process does that is stopped by SIGSTOP: calls are taken and not answered."""

from lastcall.aio import Signal
from lastcall_lab.fakes.actor_runtime import ActorRuntime


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

    async def refresh_pods(self):
        await self._awake()
        return await super().refresh_pods()

    async def reread_pod(self, live):
        await self._awake()
        return await super().reread_pod(live)

    async def stop_container(self, container_id, grace):
        await self._awake()
        code = await super().stop_container(container_id, grace)
        await self._awake()
        return code

    async def kill_container(self, container_id):
        await self._awake()
        await super().kill_container(container_id)

    async def forget_container(self, container_id):
        await self._awake()
        await super().forget_container(container_id)

    async def tear_down_pod(self, live):
        await self._awake()
        await super().tear_down_pod(live)
