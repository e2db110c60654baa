"""Bugs of the failover controller: what takes the place of the pods that a node has lost, and who knows of it."""

from planted.bug import Bug

LOST = ("tests/core/test_failover_lost.py",)
FOLLOWING = ("tests/core/test_failover_following.py",)
MARKS = ("tests/core/test_failover_owner.py",)
ASKING = ("tests/core/test_failover_replacing.py",)
WORLD = ("tests/core/test_failover_replacements.py",)

BUGS = [
    Bug(
        "a replica that ran all the time counts as a replacement",
        "failover/knowing/replaced.py",
        " and pod.metadata.creation_timestamp >= one.since",
        "",
        (*LOST, *WORLD),
    ),
    Bug(
        "one that was made in the second of the deletion replaces nobody",
        "failover/knowing/replaced.py",
        "creation_timestamp >= one.since",
        "creation_timestamp > one.since",
        LOST,
    ),
    Bug(
        "one pod replaces all that were lost",
        "failover/knowing/replaced.py",
        "            del free[pod.metadata.uid]\n",
        "",
        LOST,
    ),
    Bug(
        "who may take any of several is given the place of which there is no other",
        "failover/knowing/replaced.py",
        "key=lambda one: one.since, reverse=True",
        "key=lambda one: one.since",
        LOST,
    ),
    Bug(
        "a pod that is terminating counts from its end, not from when that was asked for",
        "failover/knowing/lost.py",
        " - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)",
        "",
        LOST,
    ),
    Bug(
        "a grace period that is longer than time itself is counted back from",
        "failover/knowing/lost.py",
        "except OverflowError:",
        "except ZeroDivisionError:",
        LOST,
    ),
    Bug(
        "what is lost fills the Node's annotations",
        "failover/knowing/lost.py",
        " and size <= room",
        "",
        LOST,
    ),
    Bug(
        "on a Node that is full of others' annotations no mark can be written",
        "failover/deciding/following.py",
        "    return case.node.room if case.node else ROOM",
        "    return ROOM",
        FOLLOWING,
    ),
    Bug(
        "a pod that comes anew on the lost node is lost beside the one before",
        "failover/knowing/lost.py",
        "        if former is None:\n",
        "        if True:\n",
        LOST,
    ),
    Bug(
        "the taint names no pods",
        "failover/deciding/forcing.py",
        "tainted=True, lost=following.wanted(case)",
        "tainted=True",
        (*FOLLOWING, *WORLD),
    ),
    Bug(
        "pods that came after the taint are forced unnamed",
        "failover/deciding/course.py",
        "        following.record,\n        forcing.force,",
        "        forcing.force,",
        FOLLOWING,
    ),
    Bug(
        "who takes a node over forgets the pods that it has lost",
        "failover/knowing/owner.py",
        "        lost=united(found.lost, wanted.lost),\n",
        "",
        MARKS,
    ),
    Bug(
        "replacements are looked for while pods are still to be removed",
        "failover/deciding/following.py",
        "if over and not remaining.going(case) and not ours else ()",
        "if over else ()",
        FOLLOWING,
    ),
    Bug(
        "a finished failover is said to be of an unknown boot",
        "failover/telling/explain.py",
        "return mark.tainted and mark.boot_id == verdict.boot_id and remaining.our_taint(case)",
        "return False",
        ("tests/core/test_failover_explain.py",),
    ),
    Bug(
        "what takes a pod's place in another zone is not found",
        "failover/knowing/lost.py",
        "for label, value in metadata.labels.items() if label not in _PLACE}",
        "for label, value in metadata.labels.items()}",
        LOST,
    ),
    Bug(
        "what takes a lost pod's place is asked for each 2 s for ever",
        "failover/deciding/seeking.py",
        "FIRST * 2.0 ** min(asked.times - 1, 10)",
        "FIRST",
        ASKING,
    ),
    Bug(
        "a list goes on when all that was lost has its place",
        "failover/doing/replacing.py",
        "                if all(one.uid in self._places for one in lost):\n                    return\n",
        "",
        ASKING,
    ),
    Bug(
        "what takes the place of a Job's pod is waited for",
        "failover/deciding/following.py",
        "    return one.kind != _JOB",
        "    return True",
        FOLLOWING,
    ),
]
