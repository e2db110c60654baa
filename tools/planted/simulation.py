"""Bugs that chance finds: shutdowns, crashes and faults from a seed on three machines (``lastcall simulate chaos``).

``seeds`` is the number of seeds, from 1 on, within which one of them must break a promise. What chance does not bring about
so soon has a scenario of its own.
"""

from planted.bug import Bug

BUGS = [
    # -- the agent -----------------------------------------------------------------------------------------------------
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
        "preStop is skipped after a restart of the agent",
        "graceful/pod_end.py",
        "(before and (before.hook_ended is not None or before.term is not None))",
        "before",
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
        "the lock is released when the last phase begins",
        "graceful/shutdowns.py",
        "self._task is None or self._task.done() or",
        "True or",
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
        "SIGKILL at once",
        "graceful/pod_end.py",
        "        kill_at = self._window.kill_at(term)\n",
        "        kill_at = term\n",
        seeds=60,
    ),
    Bug(
        "a cancelled shutdown goes on",
        "graceful/run.py",
        "        self._stopped = True\n        self._changed.set()\n",
        "        self._changed.set()\n",
        seeds=60,
    ),
    Bug(
        "the lock is not taken again after a cancelled shutdown",
        "graceful/agent.py",
        "        self._arming.outdate()\n",
        "",
        seeds=3,
        scenario="called-off-and-again.yaml",
    ),
    Bug(
        "a runtime that is away counts as a pod that has ended",
        "graceful/pod_end.py",
        "            except Unavailable:\n                await self._clock.sleep(_RETRY)\n\n    async def _kill",
        "            except Unavailable:\n                return None\n\n    async def _kill",
        seeds=60,
    ),
    Bug(
        "a full disk ends the shutdown",
        "graceful/recorder.py",
        '            except OSError as error:\n                log.error("the journal cannot be written',
        '            except ZeroDivisionError as error:\n                log.error("the journal cannot be written',
        seeds=60,
    ),
    Bug(
        "an API server that does not answer ends the shutdown",
        "graceful/run.py",
        '        except Exception as error:\n            self._note(f"the end of',
        '        except Exception as error:\n            self._stopped = True\n            self._note(f"the end of',
        seeds=60,
    ),
    # -- the kubelet ---------------------------------------------------------------------------------------------------
    Bug(
        "pods are admitted while the machine goes down",
        "lab/kubelet/shutdown.py",
        "        self._kubelet.going_down = self._kubelet.frozen = True\n",
        "        pass\n",
        seeds=60,
    ),
    Bug(
        "the kubelet starts again what the agent ends",
        "lab/kubelet/kubelet.py",
        "held=lambda uid: self.frozen or uid in self.leaving",
        "held=lambda uid: False",
        seeds=60,
    ),
    Bug(
        "the kubelet confirms a deletion before the containers have ended",
        "lab/kubelet/worker.py",
        "        if self.record.deleted:\n            self._deleted.set()\n",
        "        if self.record.deleted:\n            if not self._deleted.is_set():\n                self._early = asyncio.ensure_future(self._ask_for_deletion())\n            self._deleted.set()\n",
        seeds=60,
    ),
    Bug(
        "a restarted kubelet forgets which volumes are mounted",
        "lab/kubelet/volumes.py",
        "            for uid in self._directories.known()\n",
        "            for uid in ()\n",
        seeds=60,
    ),
    Bug(
        "a restarted kubelet does not know what runs",
        "lab/kubelet/worker.py",
        "self._ran = live is not None or any(one.run or one.last for one in recalled(pod, {}, 0.0).values())",
        "self._ran = False",
        seeds=60,
    ),
    Bug(
        "a watch event that comes twice starts a pod twice",
        "lab/kubelet/pods.py",
        "        elif worker:\n            worker.update(pod)\n",
        '        elif worker and worker.record.pod["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:\n            worker.update(pod)\n',
        seeds=60,
    ),
    # -- the client ----------------------------------------------------------------------------------------------------
    Bug(
        "after 410 Gone nobody looks what has been deleted",
        "adapters/kube/watching.py",
        "            if key not in found or found[key].uid != known.uid\n",
        "            if False\n",
        seeds=60,
    ),
    Bug(
        "a watch that is silent is believed for ever",
        "adapters/kube/watching.py",
        "asyncio.timeout(self._inactivity)",
        "asyncio.timeout(None)",
        seeds=60,
    ),
    Bug(
        "a watch that ends is not opened again",
        "adapters/kube/watching.py",
        "            if failure is not None:\n                await self._pause(failure, begun)\n",
        "            if failure is not None:\n                await asyncio.Event().wait()\n",
        seeds=60,
    ),
    # -- the controllers -----------------------------------------------------------------------------------------------
    Bug(
        "taints are replaced, not merged",
        "lab/controllers/taints.py",
        'kept = [taint for taint in old if (taint["key"], taint["effect"]) not in edits.remove]',
        'kept = [taint for taint in old if (taint["key"], taint["effect"]) in edits.add]',
        seeds=60,
    ),
    Bug(
        "a StatefulSet's pod is deleted at once where its node does not answer",
        "lab/controllers/tainteviction.py",
        'yield Delete(key, uid=pod["metadata"]["uid"])',
        'yield Delete(key, uid=pod["metadata"]["uid"], grace=0)',
        seeds=60,
    ),
    Bug(
        "a pod that is Terminating on a silent node counts as gone",
        "failover/verdict.py",
        "if terminating and node.out_of_service and not node.ready else None",
        "if terminating and not node.ready else None",
        seeds=60,
    ),
    Bug(
        "a volume is detached while it is mounted",
        "lab/controllers/attachdetach.py",
        "leaving.mounted = volume.unique in",
        "leaving.mounted = False and volume.unique in",
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
        "after a conflict a controller does not look again",
        "lab/controllers/cluster.py",
        "        except (AlreadyExists, NotFound):\n            return None\n\n    async def _turn",
        '        except (AlreadyExists, NotFound, __import__("lastcall.errors").errors.Conflict):\n            return None\n\n    async def _turn',
        seeds=60,
    ),
    Bug(
        "after an error a controller does not look again",
        "lab/controllers/runner.py",
        "            queue.failed(key, now)\n",
        "",
        seeds=60,
    ),
]
