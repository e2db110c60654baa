"""A machine in virtual time with an agent on it that can be killed at any moment, as SIGKILL would."""

import asyncio
import contextvars
import functools
import inspect
import math

from support.agents.virtual_parts import RecordingNode, phases

from lastcall.graceful.agent import AgentPorts, ShutdownAgent
from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import ShutdownMode, from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall_lab import virtual
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper
from lastcall_lab.fakes.logind import FakeLogind

TWO = phases((0, 20), (2_000_000_000, 10))
STUBBORN = {"main": ContainerScript(after_term=math.inf)}
"""A container that SIGTERM does not end."""

_life = contextvars.ContextVar("life", default=None)


class Killed(asyncio.CancelledError):
    """The process does not live any more; as a cancellation, nobody takes it for an error."""


class Life:
    """One process of the agent: its tasks, its descriptors, and everything that it touches of the outside.

    When it has died, nothing that its code still tries reaches the outside. ``fuse`` is after how many contacts with
    the outside it dies by itself: just before one, or when one has worked but its answer has not come back.
    """

    def __init__(self, logind, *, fuse=None, on_death=lambda: None):
        self.alive, self.fuse, self.keeper = True, fuse, None
        self._logind, self._on_death = logind, on_death
        self._tasks, self._descriptors = [], []

    def task(self, loop, work, **options):
        """A task factory: tasks are those of the life that starts them."""
        task = asyncio.Task(work, loop=loop, **options)
        if life := _life.get():
            life._tasks.append(task)
        return task

    def enter(self):
        """What the running task starts from now on is this life's."""
        asyncio.get_running_loop().set_task_factory(self.task)
        _life.set(self)

    def die(self):
        """The kernel closes what it has open, and nothing of it runs any more."""
        if self.alive:
            self.alive = False
            self.keeper.die()
            for descriptor in self._descriptors:
                if descriptor in self._logind.descriptors:
                    self._logind.close(descriptor)
            for task in self._tasks:
                task.cancel()
            self._on_death()

    def check(self):
        """A contact with the outside."""
        if self.alive and self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.die()
        if not self.alive:
            raise Killed

    def takes(self, name, result):
        """What comes back over the border: objects are behind it too, a new lock is this process's descriptor."""
        if name in ("open", "create", "reopen"):
            return Border(self, result)
        if name == "take_lock":
            self._descriptors.append(result)
        return result


class Border:
    """An object of the outside as a life sees it. ``counted``: whether its verbs burn the fuse."""

    def __init__(self, life, target, *, counted=True):
        self._life, self._target, self._counted = life, target, counted

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if not callable(value):
            return value
        if inspect.iscoroutinefunction(value):
            return functools.partial(self._await, name, value)
        return functools.partial(self._call, name, value)

    def _check(self):
        if self._counted:
            self._life.check()
        elif not self._life.alive:
            raise Killed

    def _call(self, name, verb, *arguments, **options):
        self._check()
        outside = _life.set(None)
        try:
            result = self._life.takes(name, verb(*arguments, **options))
        finally:
            _life.reset(outside)
        self._check()
        return result

    async def _await(self, name, verb, *arguments, **options):
        self._check()
        outside = _life.set(None)
        try:
            result = self._life.takes(name, await verb(*arguments, **options))
        finally:
            _life.reset(outside)
        self._check()
        return result


class Disk:
    """ports.Journals in memory; survives the agents. A full one takes no byte more."""

    def __init__(self):
        self.files, self.states, self.full = {}, [], False

    def create(self, shutdown_id):
        self._need_room()
        if shutdown_id in self.files:
            raise FileExistsError(17, "File exists")
        self.files[shutdown_id] = []
        return File(self, self.files[shutdown_id])

    def reopen(self, shutdown_id):
        return File(self, self.files[shutdown_id])

    def latest(self):
        if not self.files:
            return None
        newest = max(self.files)
        return newest, list(self.files[newest])

    async def write_kubelet_state(self, start, end):
        self._need_room()
        self.states.append((start, end))

    def records(self):
        return [fold_events(from_lines(lines)) for lines in self.files.values()]

    def _need_room(self):
        if self.full:
            raise OSError(28, "No space left on device")


class File:
    """ports.JournalFile of a Disk."""

    def __init__(self, disk, lines):
        self._disk, self._lines = disk, lines

    def append(self, line):
        self._disk._need_room()
        self._lines.append(line)

    async def sync(self):
        self._disk._need_room()


class Machine:
    """A machine with an agent on it, which can be killed and started again."""

    def __init__(self, *, groups=TWO, version=257, mode=ShutdownMode.ENFORCE):
        self.clock = virtual.VirtualClock()
        self.logind = FakeLogind(self.clock, version=version)
        self.holder = FakeLockHolder(self.logind, self.clock)
        self.runtime = ActorRuntime(self.clock)
        self.node = RecordingNode(self.clock)
        self.disk = Disk()
        self.config = AgentConfig(kind="AgentConfiguration", groups=groups, mode=mode)
        self.statuses = []
        self.boot = "boot-1"
        self.life = None
        self.in_pod = False

    async def start_agent(self, *, fuse=None, on_death=lambda: None, wait=1.0):
        """Starts one; waits until it has done what it does at first."""
        self.life = life = Life(self.logind, fuse=fuse, on_death=on_death)
        self.keeper = life.keeper = FakeLockKeeper(self.holder)
        self.task = contextvars.copy_context().run(self._start, life)
        await self.clock.sleep(wait)

    def _start(self, life):
        life.enter()
        self.agent = ShutdownAgent(
            self.config,
            AgentPorts(
                clock=Border(life, self.clock, counted=False),
                logind=Border(life, self.logind),
                keeper=Border(life, self.keeper),
                limit_files=Border(life, self.logind.files),
                runtime=Border(life, self.runtime),
                node=Border(life, self.node),
                journals=Border(life, self.disk),
            ),
            node_name="n1",
            boot_id=self.boot,
            on_status=self.statuses.append,
            finishes_shutdown=self.in_pod,
        )
        return asyncio.get_running_loop().create_task(self.agent.run(), name="agent")

    @property
    def agent_lives(self):
        return self.life is not None and self.life.alive and not self.task.done()

    async def going_down(self, seconds=0.0):
        """An agent is started, and the machine has been going down for so long; when the button was pressed."""
        await self.start_agent()
        pressed = self.clock.boottime()
        await self.logind.power_off()
        await self.clock.sleep(seconds)
        return pressed

    async def kill_agent(self, *, holder_too=False):
        """SIGKILL: it does nothing more; the kernel closes its descriptors."""
        if holder_too:
            self.holder.die(noticed=False)
        self.life.die()
        await asyncio.gather(self.task, return_exceptions=True)

    async def until(self, condition, seconds=200):
        end = self.clock.boottime() + seconds
        while not condition():
            assert self.clock.boottime() < end, f"waited {seconds} s in vain; {self.statuses[-1]}"
            await self.clock.sleep(0.01)

    async def off(self, number=1):
        return (await self.logind.wait_for_start(number, seconds=300)).at

    @property
    def status(self):
        return self.statuses[-1]

    def terms(self, uid=None):
        return [d.at for d in self.runtime.deliveries if d.what == "TERM" and uid in (None, d.uid)]

    def last_exit(self):
        return max(d.at for d in self.runtime.deliveries if d.what == "exit")


def on_machine(**options):
    """Runs an async test in virtual time with a machine."""

    def decorate(test):
        @functools.wraps(test)
        def wrapped(**fixtures):
            async def main():
                await test(Machine(**options), **fixtures)

            virtual.run(main())

        machine, *others = inspect.signature(test).parameters.values()
        wrapped.__signature__ = inspect.Signature(others)  # the machine is no fixture
        return wrapped

    return decorate
