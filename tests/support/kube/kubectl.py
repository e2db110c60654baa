"""The real kubectl against a lab of the test's own."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from support.kube.loop_thread import LoopThread
from support.lab.hollow_node import HollowNode

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.aio import OrderedTaskGroup, cancel_and_wait
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.values.request import UserInfo
from lastcall_lab.control_plane.control_plane import ControlPlane, ControlPlaneLocation

PROGRAM = Path(sys.executable).parent / "kubectl"
THRIFT = {"GOGC": "off", "GOMEMLIMIT": "256MiB"}
"""kubectl collects no garbage before it has that much memory: most calls end first, and take a fifth less CPU."""


def ask_kubectl(kubeconfig, line, obj=None, *, seconds=200):
    """What kubectl prints, errors too, whatever its exit code; ``obj`` is its standard input."""
    done = subprocess.run(
        [PROGRAM, f"--kubeconfig={kubeconfig}", *line.split()],
        input=json.dumps(obj) if obj else "",
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=os.environ | THRIFT,
    )
    return done.stdout + done.stderr


class Said(NamedTuple):
    """What kubectl printed, and its exit code."""

    out: str
    err: str
    code: int


class Kubectl:
    """Calls kubectl with a kubeconfig, in a namespace; ``kubectl("get pods")`` splits its first argument as a shell does.

    Without a namespace that of each object counts.
    """

    def __init__(self, kubeconfig, home, namespace="default", program=PROGRAM):
        self.namespace = namespace
        self._program = program
        self._home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(home / "cache"),
            "COLUMNS": "200",
            **THRIFT,
        }

    def run(self, line, *more, given=None, timeout=90, **environment):
        """Everything; ``given`` is its standard input: text, or an object."""
        text = given if given is None or isinstance(given, str) else json.dumps(given)
        done = subprocess.run(
            self._command(line, more),
            input=text or "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=self.environment | environment,
        )
        return Said(done.stdout, done.stderr, done.returncode)

    def __call__(self, line, *more, **options):
        """Its output; it must not fail."""
        said = self.run(line, *more, **options)
        assert said.code == 0, said
        return said.out

    def fails(self, line, *more, code=1, **options):
        """Its complaint; it must end with that code."""
        said = self.run(line, *more, **options)
        assert said.code == code, said
        return said.err

    def json(self, line, *more):
        """What it prints as JSON."""
        return json.loads(self(f"{line} -o json", *more))

    def until(self, line, condition, seconds=60.0):
        """Its output as soon as ``condition`` holds of it."""
        end = time.monotonic() + seconds
        while True:
            said = self.run(line)
            if said.code == 0 and condition(said.out):
                return said.out
            assert time.monotonic() < end, said
            time.sleep(0.2)

    @contextlib.contextmanager
    def running(self, line, *more):
        """kubectl that runs meanwhile."""
        log = self._home / f"running-{time.monotonic_ns()}"
        with (
            log.open("wb") as file,
            subprocess.Popen(
                self._command(line, more), stdin=subprocess.PIPE, stdout=file, stderr=file, env=self.environment
            ) as process,
        ):
            try:
                yield Running(process, log)
            finally:
                process.kill()

    def _command(self, line, more):
        namespace = ["-n", self.namespace] if self.namespace else []
        return [self._program, *namespace, *shlex.split(line), *map(str, more)]


class Running:
    """A kubectl that has not ended."""

    def __init__(self, process, log):
        self.process = process
        self._log = log

    @property
    def said(self):
        return self._log.read_text()

    def until(self, *words, seconds=60.0):
        """What it has said as soon as all of these are in it."""
        end = time.monotonic() + seconds
        while not all(word in self.said for word in words):
            assert time.monotonic() < end, self.said
            time.sleep(0.02)
        return self.said


class Lab(LoopThread):
    """A control plane in a thread with a loop of its own; ``enter`` it."""

    def __init__(self, directory):
        super().__init__("lab", seconds=90)
        self.kubeconfig = directory / "kubeconfig"
        self._directory = directory
        self._random = Random(1)
        self._nodes = {}
        self._tasks = {}

    def kubectl(self, namespace):
        """In a namespace that is made if it is not there."""
        return Kubectl(self.kubeconfig, self._directory, self.do(self._namespace(namespace)))

    def node(self, name, **labels):
        """A node that is ready."""
        self.do(self._node(name, labels))
        return name

    def remove_node(self, name):
        """Its kubelet ends without a word; the Node stays."""
        self._nodes.pop(name)
        self.do(cancel_and_wait(self._tasks.pop(name)))

    def hide(self, name):
        """Nobody reaches a node's kubelet until it is shown again."""
        return self._nodes.pop(name)

    def show(self, name, kubelet):
        """It answers from now on."""
        self._nodes[name] = kubelet

    def stored(self, resource, namespace, name):
        """An object as it is in the store."""
        found = self.plane.server.store.get(StorageKey(resource, namespace, name))
        return found and found.to_object()

    # -- in the loop ---------------------------------------------------------------------------------------------------

    async def _begin(self):
        self._clock = SystemClock()
        self.plane = ControlPlane(
            ControlPlaneLocation(self._directory / "control-plane", self.kubeconfig), self._clock, self._random
        )
        await self.plane.prepare()
        self.plane.server.streams.kubelets = self._nodes.get
        self._group = OrderedTaskGroup()
        self._task = self._group.start(self.plane.run(), "plane")
        self._client = Client(InProcessTransport(self.plane.server), manager="test")
        await self.plane.up.wait()

    async def _end(self):
        self.plane.stop()
        await asyncio.wait_for(asyncio.gather(self._task, return_exceptions=True), 60)
        await self._group.cancel()

    async def _namespace(self, name):
        store = self.plane.server.store
        if store.get(StorageKey("namespaces", "", name)) is None:
            await self._client.create(NAMESPACES, {"metadata": {"name": name}})
        async with asyncio.timeout(60):
            while store.get(StorageKey("serviceaccounts", name, "default")) is None:
                await asyncio.sleep(0.01)
        return name

    async def _node(self, name, labels):
        user = UserInfo(f"system:node:{name}", ("system:nodes", "system:authenticated"))
        client = Client(InProcessTransport(self.plane.server, user), manager="kubelet")
        node = self._nodes[name] = HollowNode(client, self._client, self._clock, self._random, name, labels)
        self._tasks[name] = self._group.start(node.run(), name)
        async with asyncio.timeout(60):
            while not await self._ready(name):
                await asyncio.sleep(0.01)

    async def _ready(self, name):
        stored = self.plane.server.store.get(StorageKey("nodes", "", name))
        return stored is not None and not stored.to_object()["spec"].get("taints")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """One control plane for a module, with one node."""
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        lab.node("n1")
        yield lab


@pytest.fixture
def kubectl(lab, request):
    """In a namespace of the test's own."""
    return lab.kubectl(re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:60].strip("-"))


def pod(name, *, node="n1", labels=None, containers=("main",), **spec):
    """A Pod on a node; an empty one leaves it to the scheduler."""
    where = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": name}},
        "spec": {"containers": [{"name": one, "image": "web:1"} for one in containers], **where, **spec},
    }


def workload(kind, name, *, pod_spec=None, **spec):
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    labels = {"app": name}
    template = {"containers": [{"name": "main", "image": "web:1"}], **(pod_spec or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
            **spec,
        },
    }


def config_map(name, *, labels=None, **data):
    """A ConfigMap; what is empty is left out."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    if labels:
        made["metadata"]["labels"] = labels
    return made | {"data": data} if data else made


def items(*objects):
    """Several objects as one."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def rows(table):
    """Cells by row, the heading first; cells are separated by at least three blanks."""
    return [re.split(r" {3,}", line.rstrip()) for line in table.splitlines()]


def stored(lab, kubectl, name, resource="configmaps"):
    """As the server keeps it; None if there is none of that name in kubectl's namespace."""
    return lab.stored(resource, kubectl.namespace, name)
