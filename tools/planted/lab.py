"""Bugs of the lab by which two copies of a pod live, or two nodes write one volume."""

from planted.bug import Bug

BUGS = [
    Bug(
        "a deletion's precondition on the UID is dropped",
        "lab/apiserver/deletion.py",
        "if options.uid is not None and options.uid != found:",
        "if False:",
        ("tests/core/test_lab_deletion.py",),
    ),
    Bug(
        "a write that was overtaken overwrites",
        "lab/apiserver/store.py",
        "if (old.revision if old else None) != expected:",
        "if False:",
        ("tests/core/test_lab_store.py",),
    ),
    Bug(
        "a write is answered before it is durable",
        "lab/apiserver/server.py",
        "                await self.store.journal.durable(self.store.revision)\n",
        "                pass\n",
        ("tests/core/test_lab_watches.py", "tests/core/test_lab_store.py"),
    ),
    Bug(
        "a volume is attached before it is detached elsewhere",
        "lab/controllers/attachdetach.py",
        "if volume.shared or not others:",
        "if True:",
        ("tests/core/test_lab_volumes.py",),
    ),
    Bug(
        "a volume is detached before its node has unmounted it",
        "lab/controllers/attachdetach.py",
        'leaving.mounted = volume.unique in ((node.get("status") or {}).get("volumesInUse") or ())',
        "leaving.mounted = False",
        ("tests/core/test_lab_volumes.py",),
    ),
    Bug(
        "a volume of a pod that still runs is detached because the pod is being deleted",
        "failover/upstream/verdict.py",
        "return phase not in FINISHED and (running or not terminating)",
        "return phase not in FINISHED and not terminating",
        ("tests/core/test_lab_volumes.py",),
    ),
    Bug(
        "a node that is cut off from the storage goes on writing",
        "lab/volumes/storage.py",
        '        if node in self._cut:\n            return "cannot reach the storage"\n',
        "",
        ("tests/core/test_lab_volumes.py",),
    ),
    Bug(
        "two writers of one volume are not told of",
        "lab/volumes/records.py",
        "if len(writers) < 2 or volume in world.shared:",
        "if True:",
        ("tests/core/test_lab_volumes.py",),
    ),
]
