"""Bugs of what the failover controller sends for pods, of what a new leader knows, and of how often events are told."""

from planted.bug import Bug

TWO = ("tests/core/test_failover_two_calls.py",)
ACTING = ("tests/core/test_failover_acting.py",)
REFUSING = ("tests/core/test_failover_refusing.py",)
TABLES = ("tests/core/test_failover_course.py", "tests/core/test_failover_course_forced.py")
LEADER = ("tests/core/test_failover_new_leader.py",)
REPEATS = ("tests/core/test_failover_repeats.py",)

BUGS = [
    Bug(
        "whichever pod has the name by now is set to Failed",
        "adapters/kube/failover_cluster.py",
        '{"metadata": {"uid": pod.metadata.uid}, "status": status},',
        '{"status": status},',
        TWO,
    ),
    Bug(
        "whichever pod has the name by now is removed by force",
        "adapters/kube/failover_cluster.py",
        "namespace=namespace, grace=grace, uid=uid)",
        "namespace=namespace, grace=grace)",
        TWO,
    ),
    Bug(
        "a pod that is removed by force does not say why",
        "failover/doing/removing.py",
        "latest = await self._cluster.fail_pod(pod, condition)",
        "latest = await self._cluster.fail_pod(pod, None)",
        TWO,
    ),
    Bug(
        "a pod that has succeeded becomes Failed",
        "failover/doing/removing.py",
        "            if ends:\n",
        "            if True:\n",
        TWO,
    ),
    Bug(
        "the phase of a pod is written in a call of its own",
        "failover/doing/removing.py",
        "latest = await self._cluster.fail_pod(pod, condition)",
        "latest = await self._cluster.fail_pod(pod, None)\n"
        "                if condition:\n"
        "                    await self._cluster.disrupt_pod(pod, condition)",
        TWO,
    ),
    Bug(
        "a pod is deleted with its own grace before it is removed by force",
        "failover/doing/removing.py",
        "                await self._cluster.delete_pod(*pod.key, uid=uid, grace=0)\n",
        "                await self._cluster.delete_pod(*pod.key, uid=uid, grace=None)\n"
        "                await self._cluster.delete_pod(*pod.key, uid=uid, grace=0)\n",
        TWO,
    ),
    Bug(
        "a pod that tolerates the taint for a time goes at once",
        "failover/deciding/left.py",
        "return rest > 0 if there else rest == FOR_EVER, 0 < rest < FOR_EVER",
        "return rest == FOR_EVER, False",
        TWO,
    ),
    Bug(
        "a pod that tolerates the taint for ever goes",
        "failover/deciding/remaining.py",
        'return "tolerates the taint out-of-service" if pod.tolerates else ""',
        'return ""',
        TWO,
    ),
    Bug(
        "pods are removed by force before the taint stands",
        "failover/deciding/course.py",
        "        forcing.taint,\n        forcing.only_tainted,\n",
        "        forcing.only_tainted,\n        forcing.force,\n        forcing.taint,\n",
        TWO,
    ),
    Bug(
        "pods of a boot that is not proved to be over are removed by force",
        "failover/deciding/course.py",
        "        leaving.ended_pods,\n        proving.prove,\n",
        "        leaving.ended_pods,\n        forcing.force,\n        proving.prove,\n",
        TWO,
    ),
    Bug(
        "a pod that only finalizers keep is removed by force again and again",
        "failover/deciding/remaining.py",
        "return [pod for pod in case.pods if not stays(pod) and not stuck(pod)]",
        "return [pod for pod in case.pods if not stays(pod)]",
        TWO,
    ),
    Bug(
        "what a webhook denies is asked for again without a pause",
        "failover/deciding/forcing.py",
        "return [pod for pod in remaining.going(case) if pod.refused is None or now >= pod.refused.again]",
        "return remaining.going(case)",
        TABLES,
    ),
    Bug(
        "a pause after what a webhook has denied is none",
        "failover/deciding/refusing.py",
        "        return AGAIN, GUARDED\n",
        "        return 0.0, 0.0\n",
        REFUSING,
    ),
    Bug(
        "any change of a Node makes its fencers anew",
        "failover/doing/devices.py",
        "wanted = tuple(fencer_values.basis(fencer, node) for fencer in fencers)",
        "wanted = tuple((fencer_values.basis(fencer, node), node) for fencer in fencers)",
        ACTING,
    ),
    Bug(
        "what a fencer is made from may change unnoticed",
        "failover/doing/devices.py",
        "wanted = tuple(fencer_values.basis(fencer, node) for fencer in fencers)",
        "wanted = tuple(fencer.name for fencer in fencers)",
        ACTING,
    ),
    Bug(
        "a new leader fences before it has read what others have fenced",
        "failover/doing/guard.py",
        "        if not self._informed:\n",
        "        if False:\n",
        LEADER,
    ),
    Bug(
        "who leads again relies on what it read in an earlier term",
        "failover/doing/guard.py",
        "        self._informed = False\n\n    def learn",
        "        pass\n\n    def learn",
        LEADER,
    ),
    Bug(
        "a new leader knows of the marks of others by the watch alone",
        "failover/doing/guard.py",
        "            if mark is not None and (claim is None or claim.boot_id != mark.boot_id):\n",
        "            if False:\n",
        LEADER,
    ),
    Bug(
        "a new leader knows of the last hour by the watch alone",
        "failover/doing/guard.py",
        "                for one in overview.over(name, node.fenced, now=now, wall=wall):\n",
        "                for one in ():\n",
        LEADER,
    ),
    Bug(
        "of two boots of one node that were to end one counts",
        "failover/limits/overview.py",
        "marks = {mark.boot_id: mark for",
        "marks = {0: mark for",
        LEADER,
    ),
    Bug(
        "a new leader lists all Nodes once, whatever comes of it",
        "failover/doing/controller.py",
        "        while not await self._has_learned():\n",
        "        if not await self._has_learned():\n",
        LEADER,
    ),
    Bug(
        "a mistake about one Node keeps a new leader from fencing for ever",
        "failover/doing/controller.py",
        '        except Exception:\n            log.exception("no node',
        '        except KeyError:\n            log.exception("no node',
        LEADER,
    ),
    Bug(
        "events that take turns are told each time",
        "failover/telling/repeats.py",
        "        if now < one.due:\n",
        "        if goes_on:\n",
        REPEATS,
    ),
    Bug(
        "texts that all differ are told each for itself",
        "failover/telling/repeats.py",
        '        return (reason, "")\n',
        "        return what\n",
        REPEATS,
    ),
    Bug(
        "an event that repeats is told every five minutes for ever",
        "failover/telling/repeats.py",
        "one.pause = min(LONGEST, 2 * one.pause)",
        "one.pause = FIRST",
        REPEATS,
    ),
    Bug(
        "what goes on counts as often as it is looked at",
        "failover/telling/repeats.py",
        "one.count += not goes_on",
        "one.count += 1",
        REPEATS,
    ),
]
