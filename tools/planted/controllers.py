"""Bugs of the lab's controllers: what they start, delete, taint, attach and allow too soon or too late."""

from planted.bug import Bug

STATEFUL = ("tests/core/test_lab_statefulsets.py",)
LIFECYCLE = ("tests/core/test_lab_nodelifecycle.py",)
TAINTS = ("tests/core/test_lab_tainteviction.py",)
VOLUMES = ("tests/core/test_lab_volumes.py",)
BUDGETS = ("tests/core/test_lab_budgets.py",)
GARBAGE = ("tests/core/test_lab_garbage.py",)
PODGC = ("tests/core/test_lab_podgc.py",)
DEPLOYMENTS = ("tests/core/test_lab_deployments.py",)

BUGS = [
    Bug(
        "a StatefulSet starts two pods at once",
        "lab/controllers/statefulsets.py",
        "if self._place(ordinal, pod) and self.ordered:",
        "if self._place(ordinal, pod) and False:",
        STATEFUL,
    ),
    Bug(
        "a StatefulSet shrinks by two pods at once",
        "lab/controllers/statefulsets.py",
        "            self.actions += self._ended(pod)\n            if self.ordered:\n                return True\n        return False\n",
        "            self.actions += self._ended(pod)\n        return False\n",
        STATEFUL,
    ),
    Bug(
        "a StatefulSet's update ignores the partition",
        "lab/controllers/statefulsets.py",
        'slots[rolling.get("partition", 0) :]',
        "slots",
        STATEFUL,
    ),
    Bug(
        "taint eviction ignores tolerationSeconds",
        "lab/controllers/tainteviction.py",
        "        if not seconds:\n",
        "        if True:\n",
        TAINTS,
    ),
    Bug(
        "taint eviction goes on although the taint is gone",
        "lab/controllers/tainteviction.py",
        "        if seconds == FOR_EVER:\n            return Decision(self._cancelled(key))\n",
        "        if seconds == FOR_EVER:\n            return Decision()\n",
        TAINTS,
    ),
    Bug(
        "a time that is tolerated begins anew with each change",
        "lab/controllers/tainteviction.py",
        'timer = self._timers.setdefault(key, _Timer(pod["metadata"]["uid"], now + seconds))',
        'timer = self._timers[key] = _Timer(pod["metadata"]["uid"], now + seconds)',
        TAINTS,
    ),
    Bug(
        "taints of others are replaced",
        "lab/controllers/taints.py",
        'kept = [taint for taint in old if (taint["key"], taint["effect"]) not in edits.remove]',
        "kept = []",
        LIFECYCLE,
    ),
    Bug(
        "taints are written over a version that is not known",
        "lab/controllers/taints.py",
        'uid=metadata["uid"], revision=metadata["resourceVersion"]',
        'uid=metadata["uid"]',
        LIFECYCLE,
    ),
    Bug(
        "a renewed lease is no sign of life",
        "lab/controllers/node_health.py",
        "return Health(heartbeat, renewed, now)",
        "return replace(before, renewed=renewed) if before else Health(heartbeat, renewed, now)",
        LIFECYCLE,
    ),
    Bug(
        "a lease stays no sign of life although the node's status is posted",
        "lab/controllers/node_health.py",
        "return Health(heartbeat, None, now)",
        "return Health(heartbeat, known, now)",
        LIFECYCLE,
    ),
    Bug(
        "pods of a silent node stay ready",
        "lab/controllers/nodelifecycle.py",
        "actions += [*taints.change(node, edits, now), *self._marks(key.name, node, view, now)]",
        "actions += taints.change(node, edits, now)",
        LIFECYCLE,
    ),
    Bug(
        "all nodes are tainted when all fall silent",
        "lab/controllers/zones.py",
        "return bool(states) and all(state is State.FULL for state in states.values())",
        "return False",
        LIFECYCLE,
    ),
    Bug(
        "a volume is attached before it is detached elsewhere",
        "lab/controllers/attachdetach.py",
        "if volume.shared or not others:",
        "if True:",
        VOLUMES,
    ),
    Bug(
        "a volume is detached before its node has unmounted it",
        "lab/controllers/attachdetach.py",
        'leaving.mounted = volume.unique in ((node.get("status") or {}).get("volumesInUse") or ())',
        "leaving.mounted = False",
        VOLUMES,
    ),
    Bug(
        "a volume is detached before its node is told",
        "lab/controllers/attachdetach.py",
        "if node and left != attached:",
        "if False:",
        VOLUMES,
    ),
    Bug(
        "a volume of a pod that still runs is detached because the pod is being deleted",
        "failover/upstream/verdict.py",
        "return phase not in FINISHED and (running or not terminating)",
        "return phase not in FINISHED and not terminating",
        VOLUMES,
    ),
    Bug(
        "a terminating pod is a ready endpoint",
        "lab/controllers/endpointslices.py",
        "all_ready or (serving and not terminating)",
        "all_ready or serving",
        GARBAGE,
    ),
    Bug(
        "disruptedPods are waited for for ever",
        "lab/controllers/budgets.py",
        "waited_for = {name: since for name, since in disrupted.items() if due[name] > now}",
        "waited_for = disrupted",
        BUDGETS,
    ),
    Bug(
        "pods that are being deleted count as healthy",
        "lab/controllers/budgets.py",
        'pods.ready(pod) and not pod["metadata"].get("deletionTimestamp") and',
        "pods.ready(pod) and",
        BUDGETS,
    ),
    Bug(
        "pods that were evicted a moment ago count as healthy",
        "lab/controllers/budgets.py",
        ' and pod["metadata"]["name"] not in waited_for',
        "",
        BUDGETS,
    ),
    Bug(
        "another object of the owner's name counts as the owner",
        "lab/controllers/garbage.py",
        'if found is None or found["metadata"]["uid"] != owner["uid"]:',
        "if found is None:",
        GARBAGE,
    ),
    Bug(
        "in the foreground the owner waits for nobody",
        "lab/controllers/garbage.py",
        "if mine[0] == FOREGROUND and any(",
        "if False and any(",
        GARBAGE,
    ),
    Bug(
        "pods of a missing node are orphans at once",
        "lab/controllers/podgc.py",
        "missed=now - since >= self._settings.quarantine,",
        "missed=True,",
        PODGC,
    ),
    Bug(
        "a node that is out of service loses its pods although it is ready",
        "failover/upstream/verdict.py",
        "terminating and node.out_of_service and not node.ready",
        "terminating and node.out_of_service",
        PODGC,
    ),
    Bug(
        "pod garbage collection does not say that the pod has failed",
        "lab/controllers/podgc.py",
        "        yield from pod_conditions.patch(pod, said, phase=mark.phase)\n",
        "        del said\n",
        PODGC,
    ),
    Bug(
        "a rollout does not wait for its new pods",
        "lab/controllers/rollouts.py",
        "spare = pods - allowed.least - (new.replicas - new.up)",
        "spare = pods - allowed.least",
        DEPLOYMENTS,
    ),
    Bug(
        "Recreate does not wait for the old pods to go",
        "lab/controllers/deployments.py",
        "    if any(_runs(one, facts.view) for one in facts.old):\n        return ()\n",
        "",
        DEPLOYMENTS,
    ),
    Bug(
        "the scheduler forgets pods that are on their way",
        "lab/controllers/scheduler.py",
        "return [(assumed.pod, assumed.node) for assumed in self._assumed.values()]",
        "return []",
        ("tests/core/test_lab_scheduler.py",),
    ),
    Bug(
        "a Job makes a pod again without a pause",
        "lab/controllers/job_failures.py",
        "return max(0.0, last + min(first * 2.0 ** min(failures - 1, 30), longest) - now)",
        "return 0.0",
        ("tests/core/test_lab_jobs.py",),
    ),
    Bug(
        "a Job pauses for failures from before a success",
        "lab/controllers/job_failures.py",
        "return Backoff(len(since), max(since, default=0.0))",
        "return Backoff(self.failures + len(since), max(since, default=self.last))",
        ("tests/core/test_lab_job_rules.py",),
    ),
    Bug(
        "a controller decides before it sees what it has written",
        "lab/controllers/runner.py",
        "        if key in queue.blocked:\n",
        "        if False:\n",
        ("tests/core/test_lab_runner_late.py",),
    ),
]
