"""One shutdown carried out in virtual time, and what came of it."""

import asyncio
import math

from support.agents.virtual_parts import RecordingNode

from lastcall.graceful.shutdown.run import ShutdownRun
from lastcall.model.shutdown import ShutdownMode
from lastcall_lab import virtual
from lastcall_lab.fakes.actor_runtime import ActorRuntime


class Shutdown:
    """Runs a Run to its end and keeps what there is to judge."""

    def __init__(
        self,
        plan,
        pods,
        *,
        granted=math.inf,
        mode=ShutdownMode.ENFORCE,
        until=None,
        margin=0.1,
        runtime=ActorRuntime,
        **node,
    ):
        self.plan, self.events = plan, []

        async def main():
            clock = virtual.VirtualClock()
            self.runtime = runtime(clock, kill_margin=margin)
            self.node = RecordingNode(clock, **node)
            for spec, behaviours in pods:
                self.runtime.add(spec, behaviours)
            asked = sum(phase.seconds for phase in plan)
            self.deadline = min(asked, granted)
            run = ShutdownRun(
                plan,
                deadline=self.deadline,
                mode=mode,
                runtime=self.runtime,
                node=self.node,
                clock=clock,
                tell=self.events.append,
            )
            self.run = run
            if until:
                asyncio.get_running_loop().create_task(until(self, clock))
            await run.run_phases()
            self.over = clock.boottime()
            await clock.sleep(1000)

        virtual.run(main())

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def deliveries(self, what, uid=None):
        return [d for d in self.runtime.deliveries if d.what == what and uid in (None, d.uid)]
