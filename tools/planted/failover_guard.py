"""Bugs of what the failover controller knows of itself and of all nodes when it decides whether one may be fenced, and tells."""

from planted.bug import Bug

GUARD = ("tests/core/test_failover_guard.py",)
LATE = ("tests/core/test_failover_late.py",)

LOOKALIKES = ("tests/core/test_failover_lookalikes.py",)
ERRORS = ("tests/core/test_failover_errors.py",)
BLOCKED = ("tests/core/test_failover_blocked.py",)
BUGS = [
    Bug(
        "a view with a watch that has failed is trusted",
        "failover/doing/guard.py",
        "api_failed=now if blind else self._cluster.api_failed,",
        "api_failed=self._cluster.api_failed,",
        ERRORS,
    ),
    Bug(
        "one error of the API server holds all fencing back",
        "adapters/kube/noting.py",
        "if self.run >= RUN:",
        "if self.run >= 1:",
        ERRORS,
    ),
    Bug(
        "no number of errors of the API server holds fencing back",
        "adapters/kube/noting.py",
        "elif every >= AMONG and failed >= SHARE * every:",
        "elif False:",
        ERRORS,
    ),
    Bug(
        "another Node of the same machine is of no interest",
        "failover/limits/lookalikes.py",
        "        if heard_of(name):",
        "        if False:",
        LOOKALIKES,
    ),
    Bug(
        "a Node that may be struck is not looked at right before the order",
        "failover/doing/gathering.py",
        "            if other is not None and other.silent(self._clock.boottime()):",
        "            if other is None:",
        LOOKALIKES,
    ),
    Bug(
        "another Node that is heard of while an order runs does not end it",
        "failover/doing/surety.py",
        "        self._unheard()\n        self._spared()",
        "        self._unheard()",
        ("tests/core/test_failover_acting.py",),
    ),
    Bug(
        "a mark that can get no order keeps its place",
        "failover/deciding/proving.py",
        "    if refused and not case.mark.switched_off and not case.mark.tainted:",
        "    if False:",
        BLOCKED,
    ),
    Bug(
        "the limits are not asked again as a place is taken",
        "failover/doing/worker.py",
        "            gathered = self.gathered = self._gathering.asked_again(gathered)",
        "            pass",
        BLOCKED,
    ),
    Bug(
        "a node that is not proved to be over counts as failed over",
        "failover/limits/overview.py",
        "                failed_over=mark.tainted and done.get(knot.node.metadata.name) == mark.boot_id,",
        "                failed_over=True,",
        BLOCKED,
    ),
    Bug(
        "who was asked about before says which nodes run etcd",
        "failover/doing/guard.py",
        "self._members.get((domain, etcd))",
        "next((one for key, one in self._members.items() if key[0] == domain), None)",
        GUARD,
    ),
    Bug(
        "what was claimed in an earlier term counts for ever",
        "failover/doing/controller.py",
        "if name in claimed or self",
        "if self",
        GUARD,
    ),
    Bug(
        "that most nodes were lost is forgotten as soon as a majority is back",
        "failover/doing/observing.py",
        "            self.most_lost = now\n",
        "            pass\n",
        (*GUARD, *LATE),
    ),
    Bug(
        "after most nodes were lost the view is trusted at once",
        "failover/limits/storms.py",
        '        (Limit.NODES_LOST, view.most_lost, "more than half of the nodes were lost at once"),\n',
        "",
        (*GUARD, "tests/core/test_failover_storms.py"),
    ),
    Bug(
        "a node with another label is late by the policy of before",
        "failover/doing/observing.py",
        "if before is None or choice != before.choice:",
        "if before is None:",
        LATE,
    ),
    Bug(
        "a look that is answered late is as good as any",
        "failover/doing/surety.py",
        ">= LATE:",
        ">= 1e9:",
        ("tests/core/test_failover_acting.py",),
    ),
    Bug(
        "a pod is deleted without a word of why",
        "failover/doing/removing.py",
        "                await self._cluster.disrupt_pod(pod, condition)\n",
        "",
        ("tests/core/test_failover_acting.py", "tests/core/test_failover_controller.py"),
    ),
    Bug(
        "what others have removed counts as ours",
        "failover/doing/batch.py",
        "gone = refusing.gone(failure)",
        "gone = False",
        ("tests/core/test_failover_acting.py",),
    ),
    Bug(
        "what a fencer took long to say is as old as the question",
        "failover/doing/devices.py",
        "targets.judge(target, node), self._clock.boottime()",
        "targets.judge(target, node), began",
        ("tests/core/test_failover_slow_bmc.py",),
    ),
    Bug(
        "a fencer that cannot be used makes the others be asked anew",
        "failover/doing/devices.py",
        "if same and old and not old.failing(now):",
        "if False:",
        ("tests/core/test_failover_slow_bmc.py",),
    ),
    Bug(
        "an answer that comes too late from the API server ends nothing",
        "failover/deciding/refusing.py",
        "isinstance(failure, RefusedForSafety | TimedOut | Unavailable)",
        "isinstance(failure, RefusedForSafety | Unavailable)",
        ("tests/core/test_failover_acting.py",),
    ),
    Bug(
        "what was never sent is told as a call that has failed",
        "failover/doing/batch.py",
        "return not ends or (uid in self.sent and not isinstance",
        "return not ends or (not isinstance",
        ("tests/core/test_failover_acting.py",),
    ),
    Bug(
        "each of those who wait for a look that fails looks for itself",
        "failover/doing/surety.py",
        "if self._failure and self._looks != before:",
        "if False:",
        ("tests/core/test_failover_acting.py",),
    ),
    Bug(
        "a taint that somebody has taken away was never there",
        "failover/limits/overview.py",
        "    if mark.tainted and not ends:\n        ends.append(began)\n",
        "",
        ("tests/core/test_failover_fenced.py",),
    ),
]
