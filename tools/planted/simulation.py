"""Bugs that the judge of a simulation must find, within so many seeds.

``RULES`` are bugs in rules that the judge must not share with what it judges.
"""

from planted.bug import Bug

BUGS = [
    Bug(
        "phases in the reverse order",
        "graceful/run.py",
        "in range(len(self._plan)):",
        "in reversed(range(len(self._plan))):",
        seeds=60,
    ),
    Bug(
        "preStop is skipped",
        "graceful/pod_end.py",
        "        await self._run_hook(container)\n",
        "",
        seeds=60,
    ),
    Bug(
        "the lock is not released at the end",
        "graceful/arming.py",
        "        await self._keeper.release()\n",
        "        return\n",
        seeds=60,
    ),
    Bug(
        "a journal of another boot is gone on with",
        "graceful/journal.py",
        "    if record.boot_id != boot_id:\n        return Past.EARLIER_BOOT\n",
        "",
        seeds=3,
        scenario="journal-of-another-boot.yaml",
    ),
    Bug(
        "the kubelet confirms a deletion before the containers have ended",
        "lab/kubelet/worker.py",
        "        if self.record.deleted:\n            self._deleted.set()\n",
        '        if self.record.deleted:\n            if not self._deleted.is_set():\n                self._early = __import__("asyncio").ensure_future(self._ask_for_deletion())\n            self._deleted.set()\n',
        seeds=60,
    ),
    Bug(
        "taints are replaced, not merged",
        "lab/controllers/taints.py",
        'kept = [taint for taint in old if (taint["key"], taint["effect"]) not in edits.remove]',
        'kept = [taint for taint in old if (taint["key"], taint["effect"]) in edits.add]',
        seeds=60,
    ),
    Bug(
        "a volume is attached to two nodes",
        "lab/controllers/attachdetach.py",
        "if volume.shared or not others:",
        "if True:",
        seeds=60,
    ),
    Bug(
        "no answer of a BMC counts as OFF",
        "failover/knowing/answers.py",
        "power=answer.power,",
        "power=type(answer.power).OFF,",
        seeds=3,
        scenario="bmc-deaf.yaml",
    ),
    Bug(
        "that a BMC has accepted the order counts as OFF",
        "failover/doing/devices.py",
        "fact = answers.seen(answer, boot_id=boot_id, source=name, asked=at, answered=self._clock.boottime())",
        "from msgspec.structs import replace as so\n\n        if asked.offs and not asked.offs[-1].error:\n            answer = so(answer, power=type(answer.power).OFF)\n        fact = answers.seen(answer, boot_id=boot_id, source=name, asked=at, answered=self._clock.boottime())",
        seeds=3,
        scenario="bmc-stuck.yaml",
    ),
    Bug(
        "the storm limits are ignored",
        "failover/deciding/claiming.py",
        "    if case.limits.allowed:\n",
        "    if True:\n",
        seeds=3,
        scenario="half-lost.yaml",
    ),
    Bug(
        "the node's own deadline is ignored",
        "failover/deciding/leaving.py",
        "if case.held_until is None or now >= case.held_until:",
        "if True:",
        seeds=3,
        scenario="cut-off-while-it-goes-down.yaml",
    ),
]

RULES = [
    Bug(
        "a pod at the very edge of a phase ends with the one below",
        "graceful/phases.py",
        "bisect_right(groups, priority, key",
        '__import__("bisect").bisect_left(groups, priority, key',
        seeds=60,
    ),
    Bug(
        "a phase gets half of its time where less is granted",
        "graceful/pacing.py",
        "[0].seconds / 1000",
        "[0].seconds / 2000",
        seeds=60,
    ),
    Bug(
        "SIGKILL follows SIGTERM at once where the grace is over",
        "graceful/termination.py",
        "MINIMUM = 2.0",
        "MINIMUM = 0.0",
        seeds=60,
    ),
    Bug(
        "only the two system classes have a priority",
        "model/pods.py",
        "    if pod.spec.priority is not None:\n        return pod.spec.priority\n",
        "",
        seeds=60,
    ),
    Bug(
        "critical phases shrink with the others",
        "graceful/budget.py",
        "    return group.priority >= SYSTEM_CRITICAL",
        "    return False",
        seeds=60,
    ),
]
