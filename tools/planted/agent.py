"""Bugs of the agent: order, time, the lock, restarts, cancelled shutdowns."""

from planted.bug import Bug

_CORE = ("run", "run_properties", "agent", "agent_cancelled", "phases", "budget")
CORE = tuple(f"tests/core/test_{name}.py" for name in _CORE)

BUGS = [
    Bug(
        "phase order reversed", "graceful/run.py", "in range(len(self._plan)):", "in reversed(range(len(self._plan))):"
    ),
    Bug(
        "preStop skipped",
        "graceful/pod_end.py",
        "        await self._run_hook(container)\n",
        "",
    ),
    Bug(
        "lock released early: when the last phase begins",
        "graceful/shutdowns.py",
        "self._task is None or self._task.done() or",
        "True or",
    ),
    Bug("grace not capped by the phase", "graceful/run.py", "else min(asked, left)", "else float(asked)"),
    Bug(
        "two seconds after a late hook forgotten",
        "graceful/termination.py",
        "max(self.started + self.grace, term + MINIMUM)",
        "self.started + self.grace",
    ),
    Bug(
        "a hook or a waiting sidecar has SIGTERM and SIGKILL at once where the grace fills the phase",
        "graceful/termination.py",
        "max(half, self.last_kill - MINIMUM)",
        "self.last_kill",
    ),
    Bug(
        "nothing of a short phase is left to hooks",
        "graceful/termination.py",
        "max(half, self.last_kill - MINIMUM)",
        "self.last_kill - MINIMUM",
    ),
    Bug(
        "a lock whose release was not confirmed counts as released",
        "adapters/descriptor_store.py",
        "            await self._remove(*_NAMES)\n            self._left = False\n",
        "            self._left = False\n            await self._remove(*_NAMES)\n",
        ("tests/adapters/test_descriptor_store.py",),
    ),
    Bug(
        "the lock is released at leaving by what was seen before",
        "graceful/agent.py",
        "                if not leaving:\n                    await self._wait()\n",
        "                await self._wait()\n                leaving = self._leaving\n",
    ),
    Bug(
        "a release that did not work is not tried again",
        "graceful/agent.py",
        "self._machine.state is State.LEAVING and self._arming.held",
        "False",
    ),
    Bug(
        "the kill reaches beyond the phase",
        "graceful/termination.py",
        "min(max(self.started + self.grace, term + MINIMUM), self.last_kill)",
        "max(self.started + self.grace, term + MINIMUM)",
    ),
    Bug(
        "no time kept for the kill to be confirmed",
        "graceful/termination.py",
        "end - min(kill_seconds, (end - started) / 2)",
        "end",
    ),
    Bug(
        "resumed in a later boot",
        "graceful/journal.py",
        "    if record.boot_id != boot_id:\n        return Past.EARLIER_BOOT\n",
        "",
    ),
    Bug(
        "resumed although the shutdown was cancelled",
        "graceful/journal.py",
        "    if not preparing:\n        return Past.CANCELLED\n",
        "",
    ),
    Bug(
        "a phase started twice after a restart",
        "graceful/run.py",
        "if self._before and self._before.phases[index].end not in (None, PhaseEnd.CANCELLED):",
        "if False:",
    ),
    Bug(
        "a hook runs again after a restart although it had ended",
        "graceful/pod_end.py",
        "if hook is None or limit <= 0 or (before and (before.hook_ended is not None or before.term is not None)):",
        "if hook is None or limit <= 0:",
    ),
    Bug(
        "the phase's clock starts anew after a restart",
        "graceful/run.py",
        "if self._before and record and record.started is not None and record.given is not None:",
        "if False:",
    ),
    Bug(
        "cancel seen only after all phases",
        "graceful/run.py",
        "            while not self._stopped:\n",
        "            while True:\n",
    ),
    Bug("the lock is not taken again after a cancel", "graceful/agent.py", "        self._arming.outdate()\n", ""),
    Bug(
        "a signal is believed without reading the property",
        "graceful/machine.py",
        "Seen.QUIET: (Step.COME_BACK, State.SEEKING),\n        Seen.OVER: (Step.RELEASE, State.LEAVING),",
        "Seen.QUIET: (Step.NOTHING, State.ENDING),\n        Seen.OVER: (Step.RELEASE, State.LEAVING),",
    ),
    Bug(
        "the first kill does not wait for Ready=False",
        "graceful/run.py",
        "        if not await self._within(ANNOUNCE_SECONDS, self._announcing):\n",
        "        if False:\n",
    ),
    Bug(
        "sidecars end together with the main containers",
        "graceful/pod_end.py",
        "        if after:\n            await self._wait_for_turn(after)\n",
        "",
    ),
    Bug("sidecars end in their order of start", "graceful/pod_end.py", "in reversed(waiting):", "in waiting:"),
    Bug(
        "finished pods are ended again",
        "graceful/roster.py",
        "for live in found if not live.pod.finished}",
        "for live in found}",
        ("tests/core/test_run_properties.py",),
    ),
    Bug("critical pods shrink too", "graceful/budget.py", "return group.priority >= SYSTEM_CRITICAL", "return False"),
    Bug("a pod goes to the next higher phase", "graceful/phases.py", "bisect_right", "bisect_left"),
    Bug(
        "the keeper's copy is not closed at the deadline",
        "graceful/agent.py",
        "        await self._arming.close_at(self._shutdowns.deadline)\n",
        "",
    ),
    Bug(
        "the next phase begins before the kills of the last have worked",
        "graceful/pod_end.py",
        "        try:\n            code = await self._until_ended(name, kill_at)\n        finally:\n            await cancel(killer)\n",
        "        await killer\n        code = None\n",
    ),
    Bug(
        "a runtime that is away counts as one without pods",
        "graceful/run.py",
        "        while not await self._lookout.at_hand():\n",
        "        await self._lookout.at_hand()\n        while False:\n",
    ),
    Bug(
        "the announcement goes on after a cancel",
        "graceful/shutdowns.py",
        "            await self._called_off.withdraw()\n",
        "            pass\n",
    ),
    Bug(
        "the node is made ready although another shutdown has begun",
        "graceful/shutdowns.py",
        "        await self._stay_no_longer()\n",
        "",
    ),
    Bug(
        "a new shutdown forgets what a cancelled one had begun",
        "graceful/shutdowns.py",
        "taken_over = await self._take_over()",
        "taken_over = {}",
    ),
    Bug(
        "two seconds after SIGTERM again with each restart",
        "graceful/pod_end.py",
        "term = before.term if before else None",
        "term = None",
    ),
    Bug(
        "a lock with the deadline of an earlier shutdown is kept",
        "graceful/arming.py",
        "self._outdated = await self._keeper.recover()",
        "await self._keeper.recover()",
    ),
    Bug(
        "the lock is let go before logind was asked",
        "graceful/agent.py",
        "if self._asked and self._machine",
        "if self._machine",
    ),
    Bug(
        "a restart prolongs the deadline",
        "graceful/shutdowns.py",
        "deadline = record.boottime + record.deadline",
        "deadline = self._clock.boottime() + record.deadline",
        ("tests/core/test_chaos.py",),
    ),
    Bug(
        "all of what logind grants is used, whose clock was started earlier",
        "graceful/pacing.py",
        "granted - RESERVE",
        "granted",
        ("tests/core/test_chaos.py",),
    ),
    Bug(
        "a cancel without a signal is not looked for",
        "graceful/agent.py",
        "LOOK_WHILE_ENDING = 1.0",
        "LOOK_WHILE_ENDING = 25.0",
        ("tests/core/test_agent.py", "tests/core/test_agent_cancelled.py"),
    ),
    Bug(
        "after a restart of logind the lock is believed in",
        "graceful/link.py",
        'self._failures, self.problem, self.doubtful = 0, "", True',
        'self._failures, self.problem, self.doubtful = 0, "", False',
        ("tests/core/test_agent.py", "tests/core/test_agent_cancelled.py"),
    ),
    Bug(
        "at rest only signals are believed",
        "graceful/agent.py",
        "            await self._link.unsettled()\n            seconds",
        "            await asyncio.Event().wait()\n            seconds",
    ),
]
