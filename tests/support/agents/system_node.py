"""A whole node for system tests: the real logind on a private bus, the program as an administrator starts it, and pods
that write down themselves what reaches them. Judged by what they and the recorder in systemd's place saw.
"""

import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.model.shutdown import ShutdownOutcome, from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall_lab.processes import ProcessRuntime

CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 6}
- {priority: 1000, shutdownGracePeriodSeconds: 6}
- {priority: 2000000000, shutdownGracePeriodSeconds: 4}
"""
PATIENT = CONFIG.replace("Seconds: 6}", "Seconds: 40}").replace("Seconds: 4}", "Seconds: 40}")
"""No phase runs out, however busy the machine is."""
LONG = CONFIG.replace(
    "priority: 0, shutdownGracePeriodSeconds: 6", "priority: 0, shutdownGracePeriodSeconds: 20"
).replace("Seconds: 4}", "Seconds: 15}")
"""Phases that run out, of 20, 6 and 15 seconds: the first is not over before a busy machine has killed the agent in it."""
SCRIPT = """\
say() { read up rest </proc/uptime; echo "$up NAME $1" >>TRUTH; }
trap 'say TERM; ON_TERM' TERM
say start
while :; do sleep 1 & wait $!; done
"""


class Saw(NamedTuple):
    """What a pod wrote: CLOCK_BOOTTIME seconds (to the hundredth), its name, what happened."""

    at: float
    pod: str
    what: str


def manifest(
    name,
    truth,
    *,
    priority=0,
    grace=30,
    takes=0,
    ignores_term=False,
    hook=None,
    sidecar=None,
    uid="",
    labels=None,
):
    """``takes`` is how many seconds the pod needs after SIGTERM, ``hook`` the seconds of its exec preStop hook.

    ``sidecar`` is how many seconds its sidecar, which writes as NAME-sidecar, needs after SIGTERM.
    """
    container = _container("main", name, truth, takes, ignores_term=ignores_term)
    if hook is not None:
        say = f'read up rest </proc/uptime; echo "$up {name}'
        command = f'{say} hook" >>{truth}; sleep {hook}; {say} hook-over" >>{truth}'
        container["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", command]}}}
    spec = {"terminationGracePeriodSeconds": grace, "containers": [container], "priority": priority}
    spec["volumes"] = [{"name": "truth", "hostPath": {"path": str(truth.parent)}}]
    if sidecar is not None:
        beside = _container("sidecar", f"{name}-sidecar", truth, sidecar)
        spec["initContainers"] = [beside | {"restartPolicy": "Always"}]
    metadata = {"name": name, "uid": uid, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(container, name, truth, takes, *, ignores_term=False):
    on_term = ":" if ignores_term else f"sleep {takes} & wait $!; say exit; exit 0"
    script = SCRIPT.replace("ON_TERM", on_term).replace("NAME", name).replace("TRUTH", str(truth))
    return {
        "name": container,
        "image": "localhost/lastcall/busybox:lab",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "truth", "mountPath": str(truth.parent)}],
    }


def is_armed(log):
    """Whether the agent says at last that it is armed, and no longer waits for logind, be it for more time."""
    said = re.findall(r"INFO +((?:not )?armed: .*)", log)
    unsettled = ("not armed:", "armed: asks for")
    return bool(said) and not said[-1].startswith(unsettled) and not re.search(r" so far, |; logind cannot", said[-1])


class Node:
    """One node; ``endpoint`` is a CRI socket, None for pods that are processes."""

    def __init__(self, directory: Path, logind, *, endpoint=None, config=CONFIG):
        self.directory, self.logind, self.endpoint = directory, logind, endpoint
        self.state = directory / "state"
        self.manifests = directory / "manifests"
        self.manifests.mkdir(parents=True)
        (directory / "truth").mkdir()
        self.truth = directory / "truth" / "log"
        self.truth.touch()
        self.config = directory / "agent.yaml"
        self.config.write_text(config)
        self.log = directory / "agent.log"
        self.told_before = 0
        """So many characters of the log are of earlier lives."""
        self.process = None
        self.pods = []

    def add(self, name, **options):
        self.pods.append(name)
        if options.get("sidecar") is not None:
            self.pods.append(f"{name}-sidecar")
        temporary = self.directory / f"{name}.json"
        temporary.write_text(json.dumps(manifest(name, self.truth, **options)))
        temporary.rename(self.manifests / f"{name}.json")

    async def start(self, *, wait=True, arguments=()):
        runtime = ["--runtime", "containerd", "--container-runtime-endpoint", self.endpoint] if self.endpoint else []
        command = [sys.executable, "-m", "lastcall", "lab", "node", f"--manifests={self.manifests}"]
        command += [f"--config={self.config}", f"--state-dir={self.state}", f"--logind-root={self.logind.root}"]
        command += ["--node-name=n1", "--metrics-bind-address=127.0.0.1:0", *runtime, *arguments]
        await self._spawn(command)
        if wait:
            await self.until(self.running, "all pods to run")
            await self.until(self.armed, "the lock to be held")

    async def start_agent(self, config):
        """The agent beside containers that somebody else has started."""
        command = [sys.executable, "-m", "lastcall", "agent", f"--config={config}", f"--state-dir={self.state}"]
        command += [f"--logind-root={self.logind.root}", "--node-name=n1", "--metrics-bind-address=127.0.0.1:0"]
        self.log.write_text("")
        await self._spawn([*command, "--container-runtime-endpoint", self.endpoint])
        await self.until(self.armed, "the lock to be held")

    async def _spawn(self, command):
        self.told_before = len(self.log.read_text()) if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.logind.address},
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
            )

    async def running(self):
        """Each container runs, and the runtime has said so: one that is still being started would not be listed."""
        started = {s.pod for s in self.saw() if s.what == "start"}
        statuses = self.state / "status" / "pods"
        try:
            phases = [json.loads(file.read_text())["status"]["phase"] for file in statuses.glob("[!.]*.json")]
        except (json.JSONDecodeError, FileNotFoundError):
            return False  # a file is being replaced
        pods = [*self.manifests.glob("*.json")]
        return started == set(self.pods) and len(phases) >= len(pods) and "Pending" not in phases

    async def armed(self):
        return is_armed(self.log.read_text()[self.told_before :]) and "lastcall" in await self.lock_holders()

    async def lock_holders(self):
        session = await SystemLogind(self.logind.address).open()
        try:
            return [i.who for i in await session.list_inhibitors()]
        finally:
            session.close()

    async def property(self, name):
        session = await SystemLogind(self.logind.address).open()
        try:
            return await getattr(session, name)()
        finally:
            session.close()

    async def until(self, condition, what, seconds=60.0):
        end = time.monotonic() + seconds
        while not await condition():
            if time.monotonic() > end or (self.process and self.process.returncode is not None):
                raise AssertionError(f"waited in vain for {what}:\n{self.log.read_text()[-4000:]}\n{self.saw()}")
            await asyncio.sleep(0.02)

    async def until_saw(self, pod, what, seconds=60.0):
        async def seen():
            return any((s.pod, s.what) == (pod, what) for s in self.saw())

        await self.until(seen, f"{pod} {what}", seconds)

    def saw(self):
        return [Saw(float(at), pod, what) for at, pod, what in (x.split() for x in self.truth.read_text().splitlines())]

    def when(self, pod, what):
        times = [s.at for s in self.saw() if (s.pod, s.what) == (pod, what)]
        assert len(times) == 1, f"{pod} {what}: {len(times)} times\n{self.saw()}\n{self.log.read_text()[-3000:]}"
        return times[0]

    def count(self, pod, what):
        return sum((s.pod, s.what) == (pod, what) for s in self.saw())

    async def kill(self):
        """SIGKILL, as by the OOM killer."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        self.process = None

    async def stop(self, number=signal.SIGTERM):
        if self.process:
            self.process.send_signal(number)
            await asyncio.wait_for(self.process.wait(), 60)
            code, self.process = self.process.returncode, None
            return code
        return None

    def status(self, pod):
        return json.loads((self.state / "status" / "pods" / f"default_{pod}.json").read_text())["status"]

    def ready(self):
        [condition] = json.loads((self.state / "status" / "node.json").read_text())["status"]["conditions"]
        return condition

    def records(self):
        """Of all journals; one that has just been made may have no line yet."""
        files = JournalFiles(self.state)
        journals = (from_lines(files.read_lines(i)) for i in files.list_ids())
        return [fold_events(events) for events in journals if events]

    async def over(self):
        """The one record there is, as soon as it is complete."""

        async def completed():
            return [record.outcome for record in self.records()] == [ShutdownOutcome.COMPLETED]

        await self.until(completed, "the record to be complete")
        [record] = self.records()
        return record

    async def clean_up(self):
        """Ends the program and whatever pods are left, as the next life of it would find them."""
        if self.process:
            await self.kill()
        keeper = HolderProcessKeeper(self.state, SystemClock())
        if self.state.exists() and await keeper.recover():
            await keeper.release()
        if self.endpoint is None and self.state.exists():
            runtime = ProcessRuntime(self.state, SystemClock())
            try:
                for live in await runtime.list_pods():
                    await runtime.remove_pod(live.pod.metadata.uid)
            finally:
                runtime.close()
