"""Bugs of the lab's nodes: the kubelet, its volumes, the storage behind them, and the traffic."""

from planted.bug import Bug

DELETION = ("tests/core/test_lab_kubelet_deletion.py",)
OFFLINE = ("tests/core/test_lab_kubelet_offline.py",)
ANEW = ("tests/core/test_lab_kubelet_anew.py",)
PROBES = ("tests/core/test_lab_kubelet_probes.py",)
RESTARTS = ("tests/core/test_lab_kubelet_restarts.py",)
STATUS = ("tests/core/test_lab_kubelet_status.py",)
START = ("tests/core/test_lab_kubelet_start.py",)
SHUTDOWN = ("tests/core/test_lab_node_shutdown.py",)
MOUNTS = ("tests/core/test_lab_kubelet_volumes.py",)
STORAGE = ("tests/core/test_lab_volumes.py",)
TRAFFIC = ("tests/core/test_traffic.py",)
TABLE = ("tests/core/test_lab_traffic.py",)

BUGS = [
    Bug(
        "the kubelet's last deletion names no UID",
        "lab/kubelet/worker.py",
        'grace=0, uid=metadata["uid"]',
        "grace=0",
        OFFLINE,
    ),
    Bug(
        "the kubelet's status may be another pod's of that name",
        "lab/kubelet/pod_status.py",
        'return {"metadata": {"uid": uid}, "status": {**changed, **gone}}',
        'return {"status": {**changed, **gone}}',
        OFFLINE,
    ),
    Bug(
        "the kubelet skips preStop",
        "lab/kubelet/ending.py",
        "before=tuple(self._records.values()),",
        "before=tuple(self._records.get(name) or ContainerRecord(name=name, hook_ended=0.0) for name in left),",
        DELETION,
    ),
    Bug(
        "a Service kubernetes that comes late is never told to who wants no others",
        "lab/kubelet/sources.py",
        "            if not self._master:\n",
        "            if False:\n",
        STATUS,
    ),
    Bug(
        "a second deletion gives the kubelet more time",
        "lab/kubelet/ending.py",
        "        if deadline < self._deadline:\n",
        "        if True:\n",
        DELETION,
    ),
    Bug(
        "a second deletion before the end has begun gives more time",
        "lab/kubelet/worker.py",
        "grace=min(order.grace, self._order.grace)",
        "grace=order.grace",
        DELETION,
    ),
    Bug(
        "the deletion's own grace period is ignored",
        "lab/kubelet/ending.py",
        'said = pod["metadata"].get("deletionGracePeriodSeconds")',
        "said = None",
        DELETION,
    ),
    Bug(
        "the pod goes before its last status is written",
        "lab/kubelet/worker.py",
        "            await first(self.record.writer.settled(), self._gone.wait())\n",
        "",
        OFFLINE,
    ),
    Bug(
        "the pod goes before its volumes are unmounted",
        "lab/kubelet/worker.py",
        "        await self._until_it_works(self._clean_up)\n        self.cleaned.set()\n        await self._deleted.wait()\n        await self._delete()\n",
        "        await self._deleted.wait()\n        await self._delete()\n        await self._until_it_works(self._clean_up)\n        self.cleaned.set()\n",
        MOUNTS,
    ),
    Bug(
        "a finished pod runs again after a restart of the kubelet",
        "lab/kubelet/worker.py",
        'if (self.record.pod.get("status") or {}).get("phase") in FINISHED:',
        "if False:",
        ANEW,
    ),
    Bug(
        "a volume is mounted before it is attached",
        "lab/kubelet/volumes.py",
        "            await self._until_attached(unique, name)\n",
        "",
        MOUNTS,
    ),
    Bug(
        "a new kubelet says that volumes are free while pods use them",
        "lab/kubelet/volumes.py",
        "            for uid in self._directories.known()\n",
        "            for uid in ()\n",
        MOUNTS,
    ),
    Bug(
        "a node that goes down starts what was being prepared",
        "lab/kubelet/starter.py",
        'if self._means.held(pod["metadata"]["uid"]):',
        "if False:",
        SHUTDOWN,
    ),
    Bug(
        "a node that goes down accepts pods",
        "lab/kubelet/worker.py",
        "elif not self._ran and (refusal := self._means.refusal()):",
        "elif False and (refusal := self._means.refusal()):",
        (*START, *SHUTDOWN),
    ),
    Bug(
        "pauses between restarts do not grow",
        "lab/kubelet/backoff.py",
        "min(2 * pause.seconds, settings.backoff_longest)",
        "pause.seconds",
        RESTARTS,
    ),
    Bug(
        "one failure of a probe is enough",
        "lab/kubelet/probes.py",
        "reached = length >= (probe.successes if ok else probe.failures)",
        "reached = True",
        PROBES,
    ),
    Bug(
        "a container with a startup probe is ready before it has started",
        "lab/kubelet/facts.py",
        'started = "startupProbe" not in container',
        "started = True",
        PROBES,
    ),
    Bug(
        "restartPolicy Never restarts",
        "lab/kubelet/containers.py",
        'if known.ended and (self._policy == "Never" or',
        "if known.ended and (",
        RESTARTS,
    ),
    Bug(
        "main containers do not wait for init containers",
        "lab/kubelet/containers.py",
        '    return all(_passed(one, facts.of(one["name"])) for one in init_containers(pod))\n',
        "    return True\n",
        STATUS,
    ),
    Bug(
        "a node that is cut off from the storage goes on writing",
        "lab/volumes/storage.py",
        '        if node in self._cut:\n            return "cannot reach the storage"\n',
        "",
        STORAGE,
    ),
    Bug(
        "what a node has mounted outlives its power",
        "lab/volumes/storage.py",
        "if place[1] != node}",
        "}",
        STORAGE,
    ),
    Bug(
        "two writers of one volume are not told of",
        "lab/volumes/records.py",
        "if len(writers) < 2 or volume in world.shared:",
        "if True:",
        STORAGE,
    ),
    Bug(
        "an attachment goes before the storage has detached",
        "lab/volumes/attacher.py",
        "(work, *last), now)",
        "(*last, work), now)",
        STORAGE,
    ),
    Bug(
        "terminating endpoints get traffic beside ready ones",
        "model/traffic.py",
        "sorted(ready or {endpoint for _, one",
        "sorted(ready | {endpoint for _, one",
        TRAFFIC,
    ),
    Bug(
        "a node knows of endpoints at once",
        "lab/traffic/table.py",
        "late.put_nowait((self._clock.boottime() + self.delay, change))",
        "late.put_nowait((self._clock.boottime(), change))",
        TABLE,
    ),
    Bug(
        "slices that are gone get traffic",
        "lab/traffic/table.py",
        "                known.pop(change.key, None)\n",
        "                pass\n",
        TABLE,
    ),
    Bug(
        "all nodes share one address of a Service",
        "lab/traffic/addresses.py",
        "_FIRST_NODE + node",
        "_FIRST_NODE",
        TRAFFIC,
    ),
]
