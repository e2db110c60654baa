"""Bugs of the agent: containers and pods that a kubelet has started since the agent's list, and slow sandboxes."""

from planted.bug import Bug

RESTARTED = ("tests/core/test_run_restarted.py",)

BUGS = [
    Bug(
        "what cannot be killed holds a phase that was shortened until its old end",
        "graceful/run.py",
        "if time is not before:",
        "if False:",
        ("tests/core/test_run.py",),
    ),
    Bug(
        "an empty last phase waits for the list of a runtime that is silent",
        "graceful/run.py",
        "self._pulse.silent or self._stopped",
        "self._stopped",
        ("tests/core/test_run_silent.py",),
    ),
    Bug(
        "a container that was started since the list is left to its sandbox",
        "graceful/seeing_off.py",
        "now, before = await self._started_since(), ()",
        "now, before = None, ()",
        RESTARTED,
    ),
    Bug(
        "what the kubelet starts after a cancel is ended",
        "graceful/run.py",
        "called_off=lambda: self._stopped",
        "called_off=lambda: False",
        RESTARTED,
    ),
    Bug(
        "StopPodSandbox although a container was started since",
        "adapters/cri/runtime.py",
        "        if running:\n",
        "        if False:\n",
        ("tests/adapters/test_cri_protocol.py",),
    ),
    Bug(
        "a shutdown that was called off goes on tearing sandboxes down",
        "graceful/seeing_off.py",
        "                if self._called_off():\n                    return None\n",
        "",
        RESTARTED,
    ),
    Bug(
        "a sandbox is waited for until its phase is over",
        "graceful/run.py",
        "self._within(SANDBOX_SECONDS, ",
        "self._within(1e9, ",
        RESTARTED,
    ),
    Bug(
        "a pod whose sandbox is slow to go counts as unconfirmed",
        "graceful/run.py",
        "            if not self._roster.confirmed(uid):\n",
        "            if True:\n",
        RESTARTED,
    ),
    Bug(
        "a pod that was made anew counts as ended",
        "graceful/roster.py",
        "return uid in self._done and (same or uid in self._again)",
        "return uid in self._done",
        RESTARTED,
    ),
    Bug(
        "a pod that is made anew again and again is waited for in every phase",
        "graceful/roster.py",
        "(same or uid in self._again)",
        "same",
        RESTARTED,
    ),
    Bug(
        "an end that was given up ends the one that has begun since",
        "graceful/run.py",
        "return self._ends[uid] is asyncio.current_task()",
        "return True",
        RESTARTED,
    ),
    Bug(
        "pods that were made anew take the time of the phase's own",
        "graceful/roster.py",
        " for live in waiting if live.pod.metadata.uid not in self._done)",
        " for live in waiting)",
        RESTARTED,
    ),
]
