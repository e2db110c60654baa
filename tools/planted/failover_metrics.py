"""Bugs in what the failover controller's metrics count."""

from planted.bug import Bug

EVIDENCE = ("tests/core/test_failover_evidence.py",)
STAGES = ("tests/core/test_failover_stages.py",)
PROGRESS = ("tests/core/test_failover_progress.py",)
METRICS = ("tests/core/test_failover_metrics.py",)

BUGS = [
    Bug(
        "what is for administrators is answered to the whole network",
        "adapters/status_server.py",
        "if path in self._private and not",
        "if not path and not",
        ("tests/adapters/test_status_server.py",),
    ),
    Bug(
        "evidence counts at each decision that rests on it",
        "failover/telling/progress.py",
        "if key not in node.ruled:",
        "if True:",
        PROGRESS,
    ),
    Bug(
        "a boot that was proved to be over counts once more when its machine is back",
        "failover/telling/progress.py",
        "frozenset() if case.mark.tainted else frozenset({Kind.NEW_BOOT})",
        "frozenset({Kind.NEW_BOOT})",
        PROGRESS,
    ),
    Bug(
        "pods that go by the node's last word count for a boot that is over",
        "failover/telling/progress.py",
        "frozenset({Kind.LAST_WORD}), word=True)",
        "frozenset({Kind.LAST_WORD}))",
        PROGRESS,
    ),
    Bug(
        "a step begins anew with each decision in it",
        "failover/telling/progress.py",
        "    if stage is before:\n",
        "    if stage is before:\n        node.since = now\n",
        PROGRESS,
    ),
    Bug(
        "the silence before a node is looked at closely is no time in a step",
        "failover/telling/progress.py",
        "now - silence(case, now)",
        "now",
        PROGRESS,
    ),
    Bug(
        "what another leader goes on with has a duration here",
        "failover/telling/progress.py",
        "                self._nodes.clear()\n",
        "                pass\n",
        PROGRESS,
    ),
    Bug(
        "a node that is well again stays in its step",
        "failover/telling/progress.py",
        "_moved(self._nodes.pop(name, _Node()), None, now)",
        "_moved(_Node(), None, now)",
        PROGRESS,
    ),
    Bug(
        "what others have to take away is waited for in no step of its own",
        "failover/telling/stages.py",
        "return Stage.VERIFY if case.dead and isinstance(step, Wait) else Stage.PROVE",
        "return Stage.PROVE",
        STAGES,
    ),
    Bug(
        "who is heard of is suspect",
        "failover/telling/stages.py",
        "    if suspicion.awake(case, now):\n        return None\n",
        "",
        STAGES,
    ),
    Bug(
        "a cloud's answers count as those of a fence",
        "failover/knowing/proofs.py",
        "Kind.FENCE if isinstance(said[0], PowerSeen) else Kind.INSTANCE",
        "Kind.FENCE",
        EVIDENCE,
    ),
    Bug(
        "nobody says that he leads no more",
        "failover/doing/controller.py",
        "            self._tell(Stopped())\n",
        "",
        METRICS,
    ),
    Bug(
        "a volume that could not be detached counts as detached",
        "adapters/controller_metrics.py",
        'elif verb == "detach" and not failed:',
        'elif verb == "detach":',
        METRICS,
    ),
    Bug(
        "a pod that could not be removed is no error",
        "adapters/controller_metrics.py",
        "            if failed:\n",
        "            if False:\n",
        METRICS,
    ),
    Bug(
        "a mistake of lastcall's own is counted nowhere",
        "wiring_controller.py",
        "                self._metrics.broke_off()\n",
        "                pass\n",
        ("tests/core/test_failover_adversity.py",),
    ),
]
