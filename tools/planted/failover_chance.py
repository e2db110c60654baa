"""Bugs of the failover controller that chance finds: machines, controllers and BMCs that fail (``lastcall simulate failover-chaos``)."""

from planted.bug import Bug

CHANCE = "failover-chaos"


def _bug(name: str, file: str, old: str, new: str, *, seeds: int = 60, scenario: str = CHANCE) -> Bug:
    return Bug(name, file, old, new, seeds=seeds, scenario=scenario)


BUGS: list[Bug] = [
    _bug(
        "silence is proof enough",
        "failover/deciding/course.py",
        "return Situation.PROVED if case.dead else Situation.UNPROVED",
        "return Situation.PROVED",
    ),
    _bug(
        "no answer of a BMC counts as OFF",
        "failover/knowing/answers.py",
        "power=answer.power,",
        "power=type(answer.power).OFF,",
        seeds=3,
        scenario="bmc-deaf.yaml",
    ),
    _bug(
        "that a BMC has accepted the order counts as OFF",
        "failover/doing/devices.py",
        "fact = answers.seen(answer, boot_id=boot_id, source=name, asked=at, answered=self._clock.boottime())",
        "from msgspec.structs import replace as so\n\n"
        "        if asked.offs and not asked.offs[-1].error:\n"
        "            answer = so(answer, power=type(answer.power).OFF)\n"
        "        fact = answers.seen(answer, boot_id=boot_id, source=name, asked=at, answered=self._clock.boottime())",
        seeds=3,
        scenario="bmc-stuck.yaml",
    ),
    _bug(
        "the target check is skipped",
        "failover/limits/targets.py",
        "return self.match is Match.SAME or (unchecked and self.match is Match.UNKNOWN)",
        "return True",
        seeds=3,
        scenario="bmc-wired.yaml",
    ),
    _bug(
        "the storm limits are ignored",
        "failover/deciding/claiming.py",
        "    if case.limits.allowed:\n",
        "    if True:\n",
        seeds=3,
        scenario="half-lost.yaml",
    ),
    _bug(
        "the node's own deadline is ignored",
        "failover/deciding/leaving.py",
        "if case.held_until is None or now >= case.held_until:",
        "if True:",
        seeds=3,
        scenario="cut-off-while-it-goes-down.yaml",
    ),
    _bug(
        "a taint takes the place of others",
        "failover/knowing/taints.py",
        "(*there, ours)",
        "(ours,)",
    ),
    _bug(
        "the taint stays when the node is back",
        "failover/deciding/returning.py",
        "if (mark.tainted and remaining.our_taint(case)) or (",
        "if (",
    ),
    _bug(
        "the mark stays when the node is back",
        "failover/deciding/returning.py",
        'return Unmark(why=f"node {case.name} is back and Ready")',
        'return Wait(f"node {case.name} is back and Ready")',
    ),
    _bug(
        "a pod is removed before the machine is switched off",
        "failover/deciding/leaving.py",
        "[pod for pod in remaining.at_once(case) if pod.uid in case.gone]",
        "list(remaining.going(case))",
        seeds=3,
        scenario="bmc-deaf.yaml",
    ),
]
