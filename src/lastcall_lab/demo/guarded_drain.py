"""The demo's third act: the leader of a database is evicted, as a drain does it, without a guard and with one."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import GUARD_POLICIES, NAMESPACES, PODS, STATEFUL_SETS, Object
from lastcall.aio import OrderedTaskGroup, timeout
from lastcall.errors import NotFound, TooManyRequests
from lastcall.manifests.guard import guarded_namespace_objects
from lastcall.names import GUARD_ENABLED
from lastcall.ports.node import Clock
from lastcall.report.html_report import Chapter
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.demo import order_database
from lastcall_lab.demo.order_database import PORT

NAMESPACE: Final = "orders"
NAME: Final = "orders"
RATE: Final = 20.0
"""Orders per second."""
REPLICAS: Final = 3
ASK_SECONDS: Final = 2.0
"""Between two requests for the eviction; kubectl drain waits five."""

_LOOK: Final = 0.2
_ANSWER_SECONDS: Final = 2.0


class GuardedDrainAct:
    """``say`` prints a line; ``directory`` is for what the members know of each other."""

    def __init__(self, client: Client, directory: Path, clock: Clock, say: Callable[[str], None]) -> None:
        self._client = client
        self._peers = directory / "orders"
        self._clock = clock
        self._say = say
        self._customers = OrderCustomers(self._find_members, clock)
        self._told: list[tuple[float, str]] = []
        self._began = 0.0

    async def run(self) -> Chapter:
        """Plays both evictions; returns what was seen."""
        await asyncio.to_thread(self._peers.mkdir, parents=True, exist_ok=True)
        await self._client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await self._client.create(STATEFUL_SETS, _stateful_set(self._peers), namespace=NAMESPACE)
        await self._wait_until_whole()
        self._began = self._clock.boottime()
        group = OrderedTaskGroup()
        group.start(self._customers.run(), "customers")
        try:
            without = await self._evict_leader("without a guard")
            await self._guard_pods()
            guarded = await self._evict_leader("with the guard")
        finally:
            await group.cancel()
        return Chapter("Eviction of a database's leader", self._told, [without, guarded])

    async def _evict_leader(self, how: str) -> str:
        """Asks until the leader may go; returns what it has cost."""
        await self._clock.sleep(2.0)
        self._customers.acknowledged.clear()
        await self._clock.sleep(3.0)
        name, uid = await self._find_leader()
        self._show(f"the leader {name} is evicted, as kubectl drain does it, {how}")
        asked = self._clock.boottime()
        while message := await self._ask_eviction(name):
            self._show(message)
            await self._clock.sleep(ASK_SECONDS)
        self._show(f"the eviction of {name} is accepted after {self._clock.boottime() - asked:.1f} s")
        await self._wait_until_whole(without=uid)
        taken = set(self._customers.acknowledged)
        await self._clock.sleep(2.5)
        lost = len(taken - await self._customers.read_orders())
        result = f"{how}: {lost or 'none'} of {len(taken)} acknowledged orders are lost"
        self._show(result)
        return result

    async def _ask_eviction(self, name: str) -> str:
        """Why the server refuses; "" if it has accepted, or the pod is gone."""
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            await self._client.create_subresource(PODS, name, "eviction", body, namespace=NAMESPACE)
        except TooManyRequests as error:
            return str(error).partition("; see: ")[0]
        except NotFound:
            pass
        return ""

    async def _guard_pods(self) -> None:
        """What ``lastcall manifests guard-namespace`` applies, and a GuardPolicy."""
        for obj in guarded_namespace_objects(NAMESPACE):
            if obj["kind"] != "Namespace":
                await create_object(self._client, obj)
        await self._client.patch(NAMESPACES, NAMESPACE, {"metadata": {"labels": {GUARD_ENABLED: "true"}}})
        spec = {
            "selector": {"matchLabels": {"app": NAME}},
            "provider": {"http": {"port": PORT, "path": "/guard"}},
        }
        policy: Object = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": NAME}}
        await self._client.create(GUARD_POLICIES, {**policy, "spec": spec}, namespace=NAMESPACE)
        self._show("a GuardPolicy says: no pod of orders goes before its application is ready")

    async def _wait_until_whole(self, *, without: str = "") -> None:
        """Until all members are ready, without the pod of that uid, and one leads."""
        while True:
            pods = await self._list_pods()
            uids = {pod["metadata"]["uid"] for pod in pods if _is_ready(pod)}
            if len(uids) == REPLICAS and without not in uids and await self._customers.find_leader():
                return
            await self._clock.sleep(_LOOK)

    async def _find_leader(self) -> tuple[str, str]:
        """The name and uid of the leader's pod."""
        while True:
            address = await self._customers.find_leader()
            for pod in await self._list_pods():
                if address and pod["status"].get("podIP") == address:
                    return pod["metadata"]["name"], pod["metadata"]["uid"]
            await self._clock.sleep(_LOOK)

    async def _find_members(self) -> list[str]:
        return [pod["status"]["podIP"] for pod in await self._list_pods() if pod["status"].get("podIP")]

    async def _list_pods(self) -> list[Object]:
        return list((await self._client.list(PODS, namespace=NAMESPACE)).items)

    def _show(self, text: str) -> None:
        at = self._clock.boottime() - self._began
        self._told.append((at, text))
        self._say(f"{at:7.2f} s  {text}")


class OrderCustomers:
    """Clients that order, and remember what was acknowledged. ``members`` gives the addresses."""

    def __init__(self, members: Callable[[], Awaitable[list[str]]], clock: Clock) -> None:
        self._members = members
        self._clock = clock
        self._leader = ""
        self._number = 0
        self.acknowledged: list[int] = []

    async def run(self) -> None:
        """Orders until cancelled. What is not acknowledged is ordered again, from the leader of that time."""
        while True:
            if not self._leader:
                self._leader = await self.find_leader()
            if self._leader and (await _exchange(self._leader, "POST", "/order", {"number": self._number}))[0] == 200:
                self.acknowledged.append(self._number)
                self._number += 1
            else:
                self._leader = ""
            await self._clock.sleep(1 / RATE)

    async def find_leader(self) -> str:
        """The address of the member that leads; "" if none does."""
        for address in await self._members():
            status, state = await _exchange(address, "GET", "/state")
            if status == 200 and state["leads"]:
                return address
        return ""

    async def read_orders(self) -> set[int]:
        """What the leader has."""
        while True:
            if address := await self.find_leader():
                status, orders = await _exchange(address, "GET", "/orders")
                if status == 200:
                    return set(orders)
            await self._clock.sleep(_LOOK)


async def _exchange(address: str, method: str, path: str, value: Any = None) -> tuple[int, Any]:
    """Status and JSON of a member's answer; status 0 without one."""
    body = b"" if value is None else json.dumps(value).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        async with timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(address, PORT)
            try:
                writer.write(head.encode() + body)
                answer = await reader.read()
            finally:
                writer.close()
        lines, _, content = answer.partition(b"\r\n\r\n")
        return int(lines.split(b" ", 2)[1]), json.loads(content)
    except (OSError, TimeoutError, ValueError, IndexError):
        return 0, None


def _stateful_set(peers: Path) -> Object:
    environment = [
        {"name": "PEERS", "value": str(peers)},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    container = {
        "name": NAME,
        "image": "localhost/lastcall/busybox:lab",
        "command": [sys.executable, str(Path(order_database.__file__))],
        "env": environment,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    template = {
        "metadata": {"labels": {"app": NAME}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME},
        "spec": {
            "serviceName": NAME,
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": NAME}},
            "template": template,
        },
    }


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
