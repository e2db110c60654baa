"""A random machine, a random shutdown, random faults; ``chaos_history`` keeps the truth about what happened."""

import asyncio
import logging
import math
import random

from support.agents.chaos_history import QUIET, History, Witness
from support.agents.virtual_machine import Machine
from support.agents.virtual_parts import phases, pod

from lastcall.errors import LastcallError
from lastcall.graceful.config import AgentConfig
from lastcall.model.pods import ExecAction, LifecycleHandler
from lastcall.model.shutdown import ShutdownMode
from lastcall_lab.fakes.actor_runtime import ContainerScript

NODE_CRITICAL = 2_000_001_000
PRIORITIES = (-100, 0, 999, 1000, 50_000, 2_000_000_000, NODE_CRITICAL)
EXEC = LifecycleHandler(exec=ExecAction(command=("true",)))


class Chaos:
    """One seed's story."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.history = History(seed)
        self.count = 0

    async def play(self):
        """From the start to the machine's going down, which comes for certain in the end."""
        choose = self.random
        self.machine = machine = Machine(mode=ShutdownMode.OBSERVE if choose.random() < 0.04 else ShutdownMode.ENFORCE)
        self.history.machine = machine
        machine.logind = Witness(machine.clock, self.history, version=choose.choice((257, 257, 257, 252)))
        machine.holder.logind = machine.logind
        machine.node.slow = choose.choice((0.0,) * 8 + (0.3, 1.0, 5.0))
        machine.node.slowly_back = choose.choice((0.0,) * 5 + (0.3, 3.0, 3.0))
        self.history.deliveries, self.history.told = machine.runtime.deliveries, machine.node.told
        self._configure(self._groups())
        if choose.random() < 0.3:
            self._rival()
        for _ in range(choose.randint(0, 7)):
            self._pod()
        self._side_tasks = []
        self.history.dead.begin(0.0)
        await self._start_agent()
        await self._faults()
        await self._heal()
        if not self._down:
            await self._press("at last")
            await self._until_down(200)
        self.history.now = machine.clock.boottime()
        await self._leave_nothing()

    # -- the machine ---------------------------------------------------------------------------------------------------

    def _groups(self):
        choose = self.random
        names = sorted(choose.sample((0, 1000, 50_000, 2_000_000_000), choose.randint(1, 4)))
        groups = [(name, choose.choice((0, 1, 2, 5, 8, 12, 20))) for name in names]
        return phases(*groups) if sum(seconds for _, seconds in groups) else phases((0, 10))

    def _configure(self, groups):
        machine = self.machine
        machine.config = AgentConfig(kind="AgentConfiguration", groups=groups, mode=machine.config.mode)
        self.history.configs.append((machine.clock.boottime(), machine.config))

    def _rival(self):
        value = self.random.choice(("3", "7", "12.5", "25", "300", "infinity"))
        if value == "infinity" and self.machine.logind.version < 253:
            value = "300"  # that systemd cannot power off with it
        self.machine.logind.files.put("zzz-rival.conf", value)
        if self.machine.logind._serving:
            self.machine.logind.reload()

    def _pod(self):
        choose = self.random
        self.count += 1
        uid = f"p{self.count}"
        names = [f"m{n}" for n in range(choose.randint(1, 2))] + [f"s{n}" for n in range(choose.choice((0, 0, 1, 2)))]
        mains = [name for name in names if name[0] == "m"]
        behaviours = {
            name: ContainerScript(
                after_term=choose.choice((0.0, 0.0, 0.3, 2.0, 6.0, math.inf)),
                after_kill=choose.choice((0.0,) * 6 + (0.02, 0.05) * 3 + (math.inf,)),
                hook=choose.choice((0.0, 1.5, 5.0, 30.0)),
            )
            for name in names
        }
        spec = pod(
            uid,
            uid=uid,
            priority=choose.choice(PRIORITIES),
            grace=choose.choice((None, 0, 1, 3, 7, 15, 40)),
            hook=choose.choice((None, None, EXEC, 3)),
            containers=mains,
            sidecars=names[len(mains) :],
        )
        self.machine.runtime.add(spec, behaviours)
        self.history.born[uid] = (self.machine.clock.boottime(), spec, behaviours)

    async def _start_agent(self, *, fuse=None):
        if not self.machine.agent_lives and not self._down:
            self.history.dead.end(self.machine.clock.boottime())
            await self.machine.start_agent(on_death=self._died, fuse=fuse, wait=0)
            self.machine.task.add_done_callback(self._ended)

    def _died(self):
        self._note("the agent is killed")
        self.history.dead.begin(self.machine.clock.boottime())

    def _ended(self, task):
        """By itself, so that it must have been told to."""
        if self.machine.life.alive:
            self.machine.life.die()
            if not task.cancelled() and task.exception():
                self.history.errors.append(f"the agent crashed: {task.exception()!r}")

    # -- faults --------------------------------------------------------------------------------------------------------

    async def _faults(self):
        choose, clock = self.random, self.machine.clock
        pressed = choose.choice((choose.uniform(0, 1), choose.uniform(6, 20), choose.uniform(22, 30)))
        over = pressed + self.machine.config.requested_seconds + 3
        verbs = [self._kill, self._fuse, self._holder, self._bus, self._logind, self._cancel, self._again]
        verbs += [self._away, self._disk, self._reconfigure, self._late, self._limit, self._leave, self._both]
        weights = [4, 4, 2, 2, 2, 3, 3, 2, 1, 1, 2, 1, 2, 0.5]
        story = [(pressed, self._press)]
        chosen = choose.choices(verbs, weights, k=choose.choice((0, 1, 1, 1, 2, 2, 3, 5)))
        story += [(choose.uniform(max(0.0, pressed - 3), over), verb) for verb in chosen]
        for at, verb in sorted(story, key=lambda item: item[0]):
            await clock.sleep(at - clock.boottime())
            if self._down:
                return
            await verb()
        await self._until_down(choose.choice((5, 60)))

    async def _heal(self):
        """Everything works again, and has had time to find itself again."""
        for task in self._side_tasks:
            await task
        machine = self.machine
        if not machine.logind._bus:
            self._bus_up()
        await self._start_agent()
        machine.life.fuse = None
        await self._until_down(QUIET + 3)

    async def _leave_nothing(self):
        if self.machine.agent_lives:
            await self.machine.kill_agent()

    def _note(self, text):
        self.history.faults.append((self.machine.clock.boottime(), text))

    def _later(self, seconds, action):
        async def wait():
            await self.machine.clock.sleep(seconds)
            result = action()
            if asyncio.iscoroutine(result):
                await result

        self._side_tasks.append(asyncio.get_running_loop().create_task(wait()))

    @property
    def _down(self):
        presses = self.history.presses
        return bool(presses) and presses[-1].down is not None

    async def _until_down(self, seconds):
        """And two seconds more, in which nothing more may go wrong."""
        end = self.machine.clock.boottime() + seconds
        while not self._down and self.machine.clock.boottime() < end:
            await self.machine.clock.sleep(0.25)
        if self._down:
            await self.machine.clock.sleep(2)

    def _pause(self, *more):
        return self.random.choice((0.0, 0.01, 0.3, 2.0, 6.0, *more))

    async def _press(self, why=""):
        try:
            await self.machine.logind.power_off()
        except LastcallError as error:
            self._note(f"the power button {why}: {error}")

    async def _kill(self):
        pause = self._pause(20.0)
        if self.machine.agent_lives:
            self.history.doing = "agent killed"
            self.machine.life.die()
            self.history.doing = ""
            self._later(pause, self._start_agent)

    async def _both(self):
        if self.machine.agent_lives:
            self._note("the holder is killed, and with it")
            self.history.doing = "agent and holder killed"
            self.machine.holder.die(noticed=False)
            self.machine.life.die()
            self.history.doing = ""
            self._later(self._pause(), self._start_agent)

    async def _fuse(self):
        """Dies between two steps of its own, and may die again soon after it was started again."""
        pause, again = self._pause(), self.random.choice((None, self.random.randint(0, 80)))
        if self.machine.agent_lives:
            died = self.machine.life._on_death

            def on_death():
                died()
                self._later(pause, lambda: self._start_agent(fuse=again))

            self.machine.life._on_death = on_death
            self.machine.life.fuse = self.random.randint(0, 40)

    async def _holder(self):
        self._note("the holder is killed")
        self.history.doing = "holder killed"
        self.machine.holder.die()
        self.history.doing = ""

    async def _bus(self):
        if self.machine.logind._bus:
            self._note("the bus is lost")
            self.history.cut_off.begin(self.machine.clock.boottime())
            self.machine.logind.stop_bus()
            self._later(self._pause(), self._bus_up)

    def _bus_up(self):
        """logind was off the bus with it, and is restarted, which forgets a shutdown under way."""
        self._note("the bus is back, logind is restarted")
        self.machine.logind.start_bus()
        self.machine.logind.restart_logind()
        self.history.cut_off.end(self.machine.clock.boottime())

    async def _logind(self):
        if self.machine.logind._serving:
            self._note("logind ends")
            self.history.cut_off.begin(self.machine.clock.boottime())
            self.machine.logind.stop_logind()
            self._later(self.random.choice((0.0, 0.05, 2.0)), self._logind_up)

    def _logind_up(self):
        if self.machine.logind._bus:
            self._note("logind starts")
            self.machine.logind.start_logind()
            self.history.cut_off.end(self.machine.clock.boottime())

    async def _cancel(self):
        if self.machine.logind._serving:
            self._note("shutdown -c")
            await self.machine.logind.cancel_schedule()

    async def _again(self):
        """Cancelled, and soon pressed again."""
        await self._cancel()
        self._later(self.random.choice((0.0, 0.001, 0.4, 1.5, 4.0, 16.0)), self._press)

    async def _away(self):
        if not self.machine.runtime.away:
            self._note("the runtime is away")
            self.history.away.begin(self.machine.clock.boottime())
            self.machine.runtime.away = True
            self._later(self._pause(15.0), self._runtime_back)

    def _runtime_back(self):
        self._note("the runtime is back")
        self.history.away.end(self.machine.clock.boottime())
        self.machine.runtime.away = False

    async def _disk(self):
        if not self.machine.disk.full:
            self._note("the disk is full")
            self.history.full.begin(self.machine.clock.boottime())
            self.machine.disk.full = True
            self._later(self._pause(), self._room)

    def _room(self):
        self._note("the disk has room again")
        self.history.full.end(self.machine.clock.boottime())
        self.machine.disk.full = False

    async def _reconfigure(self):
        self._configure(self._groups() if self.random.random() < 0.8 else ())
        if self.machine.agent_lives:
            self.machine.agent.reconfigure(self.machine.config)

    async def _late(self):
        self._pod()

    async def _limit(self):
        self._rival()
        self._note("another drop-in sets the limit")

    async def _leave(self):
        """systemctl restart."""
        if self.machine.agent_lives:
            self._note("the agent is told to leave")
            self.machine.agent.request_stop()
            self._later(self._pause() + 0.5, self._start_agent)


class Errors(logging.Handler):
    """Exceptions that the core caught and told."""

    def __init__(self, history):
        super().__init__(logging.ERROR)
        self._history = history

    def emit(self, record):
        if record.exc_info:
            self._history.errors.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


async def play(seed):
    """The history of a seed."""
    chaos = Chaos(seed)
    handler = Errors(chaos.history)
    logger = logging.getLogger("lastcall")
    logger.addHandler(handler)
    try:
        await chaos.play()
    finally:
        logger.removeHandler(handler)
    return chaos.history
