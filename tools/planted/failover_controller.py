"""Bugs of the failover controller: what it observes, reads and remembers."""

from planted.bug import Bug

PARTS = ("tests/core/test_failover_parts.py",)
ACTING = ("tests/core/test_failover_acting.py",)
FENCED = ("tests/core/test_failover_fenced.py",)
WORLD = ("tests/core/test_failover_controller.py", "tests/core/test_failover_proved.py")
ADVERSITY = ("tests/core/test_failover_adversity.py",)
UNREADABLE = ("tests/core/test_failover_unreadable.py",)

BUGS = [
    Bug(
        "a mistake about one node ends what is done about all",
        "failover/doing/controller.py",
        "        except Exception as error:\n            log.exception(",
        "        except ZeroDivisionError as error:\n            log.exception(",
        ("tests/core/test_failover_adversity.py",),
    ),
    Bug(
        "one agent's Lease that cannot be read stops all nodes",
        "adapters/kube/failover_cluster.py",
        "return [one.obj for one in found if isinstance(one, decoding.Known)]",
        "return [one.obj for one in found if one.obj]",
        UNREADABLE,
    ),
    Bug(
        "a pod of etcd that cannot be read stops all nodes of the control plane",
        "adapters/kube/failover_cluster.py",
        "self._client.list(_PLACES,",
        "self._client.list(_PODS,",
        UNREADABLE,
    ),
    Bug(
        "what a fence was asked about one boot counts for the next",
        "failover/doing/devices.py",
        "            self._asked = {}\n        broken",
        "        broken",
        ACTING,
    ),
    Bug(
        "what is there at the first look counts as a sign of life",
        "failover/knowing/sightings.py",
        "if ready.status not in LIVES or first:",
        "if ready.status not in LIVES:",
        PARTS,
    ),
    Bug(
        "Ready=Unknown, which others write, counts as a sign of life",
        "failover/knowing/sightings.py",
        "if ready.status not in LIVES or first:",
        "if first:",
        PARTS,
    ),
    Bug(
        "a watch that is behind brings an old boot back",
        "failover/knowing/sightings.py",
        "if number < self._revisions[which]:",
        "if False:",
        PARTS,
    ),
    Bug(
        "who has slept trusts what he sees",
        "failover/knowing/own_clock.py",
        "passed > PERIOD + _LATE or ",
        "",
        PARTS,
    ),
    Bug(
        "one toleration of one taint is enough",
        "failover/deciding/left.py",
        "return time - (wall - taint.time_added.timestamp())",
        "return time",
        PARTS,
    ),
    Bug(
        "lastcall's own taint is taken for a person's word",
        "failover/deciding/concluding.py",
        " and not (isinstance(mark, OwnerMark) and mark.tainted)",
        "",
        ADVERSITY + WORLD,
    ),
    Bug(
        "the policy's mode goes before that of the controller",
        "failover/deciding/concluding.py",
        "mode=min(spec.mode, terms.mode, key=_CAUTION.index),",
        "mode=spec.mode,",
        WORLD,
    ),
    Bug(
        "a view that is sick is trusted",
        "failover/doing/guard.py",
        "api_failed=now if blind else self._cluster.api_failed,",
        "api_failed=None,",
        ADVERSITY,
    ),
    Bug(
        "what is about to be marked is not counted",
        "failover/doing/worker.py",
        "            self._gathering.guard.claim(self.name, step.mark)\n",
        "            pass\n",
        WORLD,
    ),
    Bug(
        "after history went back no sign of life counts any more",
        "failover/knowing/sightings.py",
        "return since is not None and number < min(since, self._revisions[which])",
        "return False",
        PARTS + ADVERSITY,
    ),
    Bug(
        "silence reaches back to before an etcd was restored",
        "failover/knowing/sightings.py",
        "self._begin(now, anew=True)\n        if self._older(0, number):",
        "self._revisions = [0, 0]\n        if self._older(0, number):",
        PARTS,
    ),
    Bug(
        "what stands on a Node and cannot be read counts as nothing",
        "failover/limits/overview.py",
        '        yield closed(name, "", now)\n',
        "",
        FENCED,
    ),
    Bug(
        "who has come back is never noticed to be late again",
        "failover/doing/observing.py",
        "            self._alarms.set(name, (now if silent else knot.seen.quiet_since) + knot.patience)\n",
        "",
        WORLD,
    ),
    Bug(
        "only the watch says whether a node has renewed its Lease",
        "failover/doing/reading.py",
        "            seen.lease(lease, now, since=known[1])\n",
        "            pass\n",
        ADVERSITY,
    ),
    Bug(
        "the Node is written although it has changed",
        "adapters/kube/failover_cluster.py",
        '"resourceVersion": node.metadata.resource_version}',
        '"resourceVersion": ""}',
        WORLD,
    ),
    Bug(
        "workers go on when leadership has ended",
        "failover/doing/controller.py",
        "            await group.cancel()\n",
        "",
        ADVERSITY,
    ),
    Bug(
        "a clock that was set is trusted",
        "failover/doing/guard.py",
        "clock_stepped=self._observing.clock.stepped,",
        "clock_stepped=None,",
        WORLD,
    ),
]
