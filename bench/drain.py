"""Nodes of 110 pods are emptied by ``lastcall drain`` and by ``kubectl drain``, in turn, at the same lab: seconds and requests.

The nodes are hollow: what is measured is the program that drains, and what it asks of the API server. A pod ends a second
after it was deleted. kubectl drains one node after the other, lastcall all at once. Each program runs as a user does it;
its time is that of its process.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from figures import Figures
from support.kube.kubectl import Lab

from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.names import DRAINS_NAMESPACE

NAME = "drain"
HEAD = ["what", "pods", "lastcall drain", "kubectl drain", "target", "verdict"]
PODS_PER_NODE = 110
COUNTS = (1, 10, 50)
"""Nodes."""
LONGEST = 2700
"""Seconds for one program to empty all nodes: kubectl takes half a minute for each."""
CLIENTS = 32
"""Requests of the bench at once."""
BIN = Path(sys.executable).parent
COMMANDS = {
    "lastcall": [str(BIN / "lastcall"), "drain", "--force"],
    "kubectl": [str(BIN / "kubectl"), "drain", "--force"],
}


@dataclass(frozen=True)
class DrainRow:
    """A line of the table: the median of lastcall is to be no more than that of kubectl."""

    what: str
    pods: int
    lastcall: Figures
    kubectl: Figures

    @property
    def met(self):
        return self.lastcall.median <= self.kubectl.median

    def cells(self):
        verdict = "met" if self.met else "MISSED"
        return [self.what, str(self.pods), str(self.lastcall), str(self.kubectl), "at most kubectl's", verdict]


class Drain:
    """``turns`` times both programs for each number of nodes; ``told`` says which requests there were."""

    def __init__(self, *, quick, turns, tell):
        self._counts, self._pods = ((1, 2), 3) if quick else (COUNTS, PODS_PER_NODE)
        self._turns, self._tell = turns, tell
        self.told = []

    def rows(self):
        directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
        try:
            with Lab(directory) as lab:
                lab.kubectl(DRAINS_NAMESPACE)
                return [row for count in self._counts for row in self._measure(lab, count)]
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _measure(self, lab, count):
        found = {by: [] for by in COMMANDS}
        turns = self._turns if count == 1 else 1
        for turn in range(turns):
            for by in COMMANDS:
                self._tell(f"{NAME}: {count} nodes by {by}, {turn + 1}")
                figures = self._drain(lab, by, [f"{by[0]}{count}-{turn}-{number}" for number in range(count)])
                self._tell(f"{NAME}: {figures[0]:.1f} s and {figures[1].total()} requests")
                found[by].append(figures)
        pods = count * self._pods
        nodes = "1 node" if count == 1 else f"{count} nodes"
        for by, measured in found.items():
            said = ", ".join(f"{number} {what}" for what, number in measured[-1][1].most_common())
            self.told.append(f"{NAME}: {nodes} by {by}: {said}")
        seconds = [Figures(tuple(one[0] for one in found[by]), "s") for by in COMMANDS]
        requests = [Figures(tuple(one[1].total() for one in found[by]), "requests") for by in COMMANDS]
        return [DrainRow(f"{nodes} emptied", pods, *seconds), DrainRow(f"requests to empty {nodes}", pods, *requests)]

    def _drain(self, lab, by, nodes):
        """Seconds, and the requests by verb and resource."""
        for name in nodes:
            lab.node(name)
        kubectl = lab.kubectl(f"bench-{nodes[0]}")
        lab.do(_make_pods(lab, kubectl.namespace, nodes, self._pods))
        user = kubectl("auth whoami -o", "jsonpath={.status.userInfo.username}")
        before = Counter(lab.plane.server.audit.used)
        begun = time.monotonic()
        code = lab_process(COMMANDS[by] + nodes, lab.kubeconfig, lab._directory)
        seconds = time.monotonic() - begun
        assert code == 0, f"{by}: {(lab._directory / 'drain.log').read_text()[-3000:]}"
        asked = Counter()
        for use, number in (Counter(lab.plane.server.audit.used) - before).items():
            if use.user == user:
                asked[f"{use.verb} {use.resource or 'discovery'}"] += number
        left = lab.do(lab._client.list(PODS, namespace=kubectl.namespace)).items
        assert not left, "pods are left"
        for name in nodes:
            lab.remove_node(name)
            lab.do(lab._client.delete(NODES, name))
        return seconds, asked


def lab_process(command, kubeconfig, directory):
    """The exit code of a program that a user calls."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "KUBECONFIG": str(kubeconfig)}
    with (directory / "drain.log").open("wb") as log:
        return subprocess.run(command, stdout=log, stderr=log, env=environment, check=False, timeout=LONGEST).returncode


async def _make_pods(lab, namespace, nodes, count):
    """Bare pods that take a second to end, and run."""
    turns = asyncio.Semaphore(CLIENTS)

    async def make(node, number):
        pod = {
            "metadata": {"name": f"{node}-{number}", "labels": {"ends": "late"}},
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "web:1"}],
            },
        }
        async with turns:
            await lab._client.create(PODS, pod, namespace=namespace)

    await asyncio.gather(*(make(node, number) for node in nodes for number in range(count)))
    pods = len(nodes) * count
    while True:
        found = (await lab._client.list(PODS, namespace=namespace)).items
        if sum(pod["status"].get("phase") == "Running" for pod in found) == pods:
            return
        await asyncio.sleep(0.5 + pods / 1000)  # a list of 5,500 pods delays the kubelets whose writes are waited for
