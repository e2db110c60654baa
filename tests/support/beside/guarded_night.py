"""A shutdown beside a kubelet with two guarded pods: the application of one becomes ready, that of the other never does.

The guard runs beside the lab's API server; the test itself answers for the applications, at the addresses of their pods.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from support.beside.node import CONFIG, BesideNode, beside_node
from support.beside.story import Span, condition_of, now, settle

from lastcall.manifests.guard import guarded_namespace_objects
from lastcall.names import GUARD_READY

READY, STUCK, PLAIN = "ready", "stuck", "plain"
PORT = 18080
ANSWERS = 4
"""After so many answers that it prepares, the application of ``READY`` is ready."""


class Application:
    """Answers the questions of the provider ``http`` for one pod."""

    def __init__(self, *, is_stuck):
        self._is_stuck = is_stuck
        self._asked = 0
        self.prepared = self.ready = 0.0
        """When it was told to prepare, and when it said for the first time that it is ready."""

    @contextlib.asynccontextmanager
    async def serving(self, address):
        """While the context lasts."""
        server = await asyncio.start_server(self._serve, address, PORT)
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            body = json.dumps(self._answer(urlsplit(head.split()[1]).path.rpartition("/")[2])).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        writer.close()

    def _answer(self, question):
        if question == "health":
            return {"healthy": True}
        if question == "prepare":
            self.prepared = self.prepared or now()
        if question != "progress":
            return {}
        if not self.prepared:
            return {"state": "lost"}
        self._asked += 1
        if self._is_stuck:
            return {"state": "stalled", "message": "its replica does not follow"}
        if self._asked <= ANSWERS:
            return {"state": "preparing", "percent": 100 * self._asked // (ANSWERS + 1)}
        self.ready = self.ready or now()
        return {"state": "ready"}


@dataclass
class GuardedNight:
    """What was recorded."""

    node: BesideNode
    applications: dict
    span: Span
    record: object = None
    report: str = ""


async def play_guarded_night(directory):
    """The one shutdown."""
    async with beside_node(directory, "--guard") as node, contextlib.AsyncExitStack() as opened:
        applications = {READY: Application(is_stuck=False), STUCK: Application(is_stuck=True)}
        night = GuardedNight(node, applications, Span())
        node.config.write_text(CONFIG.replace("shutdownGracePeriodSeconds: 90", "shutdownGracePeriodSeconds: 50"))
        await node.start_kubelet()
        await asyncio.to_thread(apply_workloads, node)
        await node.until_wrote(READY, STUCK, PLAIN)
        await node.until(have_addresses(node), "the addresses of the guarded pods")
        for name, application in applications.items():
            [pod] = node.history.current("pods", f"{name}-0")
            await opened.enter_async_context(application.serving(pod["status"]["podIP"]))
        await node.start_agent()
        await node.until(are_guarded(node), "the guard's condition on its pods")
        await settle()
        night.span.began = now()
        await node.host.logind.power_off()
        await node.until(node.host.went_down, "the release")
        night.span.released = now()
        night.record = await asyncio.to_thread(node.record)
        night.report = await asyncio.to_thread(read_report, node)
        return night


def apply_workloads(node):
    """The namespace is guarded before its policy is made."""
    node.apply(*guarded_namespace_objects("default"))
    end = time.monotonic() + 60
    while "guardpolicies.lastcall.dev" not in node.kubectl("get crd -o name"):
        assert time.monotonic() < end, "the kind GuardPolicy is not there"
        time.sleep(0.1)
    made = node.workloads
    node.apply(_policy(READY), _policy(STUCK), made.guarded(READY), made.guarded(STUCK), made.plain(PLAIN))


def _policy(name):
    return {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "GuardPolicy",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "provider": {"http": {"port": PORT}}},
    }


def have_addresses(node):
    async def condition():
        pods = [pod for name in (READY, STUCK) for pod in node.history.current("pods", f"{name}-0")]
        return len([pod for pod in pods if pod.get("status", {}).get("podIP")]) == 2

    return condition


def are_guarded(node):
    async def condition():
        pods = [pod for name in (READY, STUCK) for pod in node.history.current("pods", f"{name}-0")]
        return len([pod for pod in pods if condition_of(pod, GUARD_READY)]) == 2

    return condition


def read_report(node):
    """What ``lastcall report`` prints of the shutdown."""
    command = [sys.executable, "-m", "lastcall", "report", f"--state-dir={node.state}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
