"""What lastcall costs while nothing happens: memory, CPU, and the CPU of ``lastcall --help``."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from figures import Figures, Row
from nodes import ContainerNode, ProcessNode, running

_TICK = os.sysconf("SC_CLK_TCK")
_MIB = 1024


async def container_rows(containerd, *, pods, seconds):
    """The agent as it stands on a cluster's node, and the holder of its lock."""
    node = ContainerNode(containerd)
    async with running(node, pods) as logind:
        agent = await node.agent(logind)
        try:
            await agent.until_says("INFO    armed")
            return await _rows("lastcall agent", agent.process.pid, pods=pods, seconds=seconds, targets=True)
        finally:
            await agent.stop()


async def process_rows(*, pods, seconds):
    """The lab's node: agent, runtime, manifests and status in one process."""
    node = ProcessNode()
    async with running(node, pods) as logind:
        agent = await node.agent(logind)
        try:
            await agent.until_says("INFO    armed")
            return await _rows("lastcall lab node", agent.process.pid, pods=pods, seconds=seconds, targets=False)
        finally:
            await agent.stop()


async def _rows(name, pid, *, pods, seconds, targets):
    await asyncio.sleep(min(seconds, 5))  # what belongs to the start is over
    holders = _holders(pid)
    used, began = sum(map(cpu_seconds, [pid, *holders])), time.monotonic()
    await asyncio.sleep(seconds)
    percent = 100 * (sum(map(cpu_seconds, [pid, *holders])) - used) / (time.monotonic() - began)
    kubelet = {"rss": "79 MiB with 10 pods, 93 with 50", "cpu": "1.5 % with 10 pods, 4.6 with 50"} if targets else {}
    return [
        Row(
            f"{name}: RSS at rest",
            pods,
            _one(rss(pid), "MiB"),
            limit=45 if targets else None,
            kubelet=kubelet.get("rss", ""),
        ),
        Row(
            f"{name}: CPU at rest (its lock's holder too), of a core, over {seconds} s",
            pods,
            _one(percent, "%"),
            limit=0.1 if targets else None,
            kubelet=kubelet.get("cpu", ""),
        ),
        Row(f"{name}: RSS of its lock's holder", pods, _one(sum(map(rss, holders)), "MiB")),
    ]


def help_row(times):
    """User and system time of the whole command, as the kernel counts it."""
    spent = []
    for _ in range(times + 1):
        process = subprocess.Popen([sys.executable, "-m", "lastcall", "--help"], stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        spent.append(usage.ru_utime + usage.ru_stime)
    return Row("lastcall --help: CPU", None, Figures(tuple(spent[1:])), limit=0.25)  # the first writes the byte code


def _one(value, unit):
    return Figures((value,), unit)


def rss(pid):
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / _MIB


def cpu_seconds(pid):
    """Seconds of user and system time of all threads (proc(5): the 14th and 15th field)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _holders(pid):
    """The program's child that holds the lock; in a list."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split() if b"lock_holder" in Path(f"/proc/{child}/cmdline").read_bytes()]
