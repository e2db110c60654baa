"""A StatefulSet's roll that the guard holds for ten minutes, and how soon it goes on when the application is ready.

etcd, kube-apiserver and kube-controller-manager are real; the guard is ``lastcall guard run`` with the rights of its
manifests. No kubelet runs: this program binds the pods, says that they are ready, removes those that are deleted, and answers
the questions of the provider ``http`` for them. While a deletion is refused, the controller's backoff grows from milliseconds to
1,000 seconds.
"""

import asyncio
import contextlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from figures import Figures, Row
from programs import Program
from real_control_plane import RealControlPlane, free_port, why_not

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.resources import GUARD_POLICIES, NODES, PODS, STATEFUL_SETS, dict_resource
from lastcall.errors import LastcallError
from lastcall.manifests import uninstall_webhook
from lastcall.manifests.guard import GuardChoices, guard_labels, guard_objects, guarded_namespace_objects
from lastcall.manifests.guard_webhooks import PATH, guard_webhook_configuration, url_client
from lastcall.names import API_VERSION
from lastcall_lab.control_plane.create_objects import create_object

NAME = "guard-backoff"
HELD, HELD_QUICK = 600, 20
"""Seconds for which the roll is held."""
MOST = 5.0
"""Seconds within which it has to go on."""

_SPACE, _SET, _REPLICAS = "shop", "db", 2
_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
_BY_HAND = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ValidatingWebhookConfiguration")


class GuardBackoff:
    """``left_out`` says why there are no figures."""

    def __init__(self, *, quick, turns, tell):
        self._held = HELD_QUICK if quick else HELD
        self._turns = turns
        self._tell = tell
        self.left_out = []

    async def rows(self):
        """One control plane; the last pod of the set is rolled, ``turns`` times."""
        if why := why_not("etcd", "kube-apiserver", "kube-controller-manager"):
            self.left_out.append(f"{NAME}: {why}")
            return []
        directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
        (directory / "plane").mkdir()
        try:
            async with _Scene(directory).running() as scene:
                found = [await self._hold(scene, turn) for turn in range(self._turns)]
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        what = f"a StatefulSet's roll held for {self._held} s, kube-controller-manager"
        seconds, refused = (tuple(one[number] for one in found) for number in range(2))
        return [
            Row(f"{what}: the pod is deleted after its application is ready", None, Figures(seconds), limit=MOST),
            Row(f"{what}: refusals", None, Figures(refused, "reviews")),
        ]

    async def _hold(self, scene, turn):
        """Seconds from readiness to the deletion, and how often the controller was refused."""
        scene.application.is_ready = False
        pod = await scene.roll(turn)
        before = scene.refusals()
        await asyncio.sleep(self._held)
        assert await scene.uid(pod.name) == pod.uid, "it was not held"
        began = asyncio.get_running_loop().time()
        scene.application.is_ready = True
        while await scene.uid(pod.name) == pod.uid:
            await asyncio.sleep(0.02)
        seconds = asyncio.get_running_loop().time() - began
        self._tell(f"{NAME}: held for {self._held} s, deleted {seconds:.2f} s after it was ready")
        await scene.until_whole()
        return seconds, scene.refusals() - before


@dataclass
class _Application:
    """Answers the questions of the provider ``http``."""

    is_ready: bool = False
    asked: list = field(default_factory=list)

    async def serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.split()[1])
            state = "ready" if self.is_ready else "preparing"
            body = json.dumps({"healthy": True, "state": state}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        writer.close()


@dataclass(frozen=True)
class _Pod:
    name: str
    uid: str


class _Scene:
    """A control plane, a guard, a StatefulSet whose pods this program keeps."""

    def __init__(self, directory):
        self._directory = directory
        self.application = _Application(is_ready=True)
        self._guard = None

    @contextlib.asynccontextmanager
    async def running(self):
        only = "--controllers=statefulset-controller"  # others would miss the node's kubelet
        real = RealControlPlane(self._directory / "plane")
        async with real.running(), real.controller_manager(only), contextlib.AsyncExitStack() as stack:
            known = kubeconfig.load_kubeconfig([real.kubeconfig("admin")], SystemClock())
            http = stack.enter_context(contextlib.closing(HttpsTransport(known.endpoint, known.credentials)))
            self._client = Client(http, manager="bench")
            server = await asyncio.start_server(self.application.serve, "127.0.0.1", 0)
            async with server:
                await self._install(real.kubeconfig("admin"))
                async with self._guard_run():
                    await self._make_workload(server.sockets[0].getsockname()[1])
                    keeping = asyncio.create_task(self._keep_pods())
                    try:
                        await self.until_whole()
                        yield self
                    finally:
                        keeping.cancel()
                        await asyncio.gather(keeping, return_exceptions=True)

    async def roll(self, turn):
        """The last pod, for whose deletion the controller has asked in vain."""
        found = await self._client.get(PODS, f"{_SET}-{_REPLICAS - 1}", namespace=_SPACE)
        template = {"metadata": {"annotations": {"turn": str(turn)}}}
        change = {"spec": {"template": template, "updateStrategy": {"rollingUpdate": {"partition": _REPLICAS - 1}}}}
        await self._client.patch(STATEFUL_SETS, _SET, change, namespace=_SPACE)
        name, uid = found["metadata"]["name"], found["metadata"]["uid"]
        await self._until(lambda: self._is_held(uid))
        return _Pod(name, uid)

    async def until_whole(self):
        """Until all pods are ready and none is held."""
        await self._until(self._is_whole)

    async def uid(self, name):
        """Of the pod that is not being deleted; "" if there is none."""
        for one in await self._pods():
            if one["metadata"]["name"] == name and "deletionTimestamp" not in one["metadata"]:
                return one["metadata"]["uid"]
        return ""

    def refusals(self):
        """How often the guard has told that it refuses, repeated refusals included."""
        return len(re.findall(r"of pod \S+ by \S+ is refused", self._guard.log.read_text()))

    # -- within --------------------------------------------------------------------------------------------------------

    async def _install(self, access):
        self._port = free_port()
        for obj in guard_objects(GuardChoices()):
            if obj["kind"] not in _BY_HAND:
                await create_object(self._client, obj)
        client = url_client(f"https://127.0.0.1:{self._port}{PATH}")
        await create_object(self._client, guard_webhook_configuration(client, labels=guard_labels()))
        ending = url_client(f"https://127.0.0.1:{self._port}{uninstall_webhook.PATH}")
        await create_object(self._client, uninstall_webhook.uninstall_webhook_configuration(ending))
        for obj in guarded_namespace_objects(_SPACE):
            await create_object(self._client, obj)
        await self._client.create(_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=_SPACE)
        await self._client.create(NODES, {"metadata": {"name": "node"}})
        wanted = {"spec": {"expirationSeconds": 7200}}
        made = await self._client.create_subresource(
            _ACCOUNTS, "lastcall-guard", "token", wanted, namespace="lastcall-system"
        )
        self._access = self._directory / "guard.kubeconfig"
        self._access.write_text(access.read_text().replace("admin-token", made["status"]["token"]))

    @contextlib.asynccontextmanager
    async def _guard_run(self):
        said = [f"--kubeconfig={self._access}", f"--webhook-bind-address=127.0.0.1:{self._port}", "--verbose"]
        said += ["--metrics-bind-address=0", "--certificate-name=127.0.0.1", "--allowed-network=127.0.0.0/8"]
        self._guard = await Program.lastcall(
            "guard", "run", *said, "--drain-seconds=0", log=self._directory / "guard.log", bus=""
        )
        try:
            await self._guard.until_says("the webhook is at ")
            yield
        finally:
            await self._guard.stop()

    async def _make_workload(self, port):
        labels = {"app": _SET}
        policy = {"selector": {"matchLabels": labels}, "provider": {"http": {"port": port, "reversible": True}}}
        made = {"apiVersion": API_VERSION, "kind": "GuardPolicy", "metadata": {"name": _SET}, "spec": policy}
        await self._client.create(GUARD_POLICIES, made, namespace=_SPACE)
        pod = {"containers": [{"name": "main", "image": "none"}], "automountServiceAccountToken": False}
        spec = {"serviceName": _SET, "replicas": _REPLICAS, "selector": {"matchLabels": labels}}
        spec["template"] = {"metadata": {"labels": labels}, "spec": pod}
        await self._client.create(STATEFUL_SETS, {"metadata": {"name": _SET}, "spec": spec}, namespace=_SPACE)

    async def _keep_pods(self):
        """As scheduler and kubelet would, without end."""
        while True:
            for pod in await self._pods():
                with contextlib.suppress(LastcallError):
                    await self._keep_pod(pod)
            await asyncio.sleep(0.1)

    async def _keep_pod(self, pod):
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            await self._client.delete(PODS, name, namespace=_SPACE, grace=0)
        elif not pod["spec"].get("nodeName"):
            body = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node"}}
            await self._client.create_subresource(PODS, name, "binding", body, namespace=_SPACE)
        elif pod["status"].get("phase") != "Running":
            condition = {"type": "Ready", "status": "True"}
            status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
            body = {"status": status | {"conditions": [condition]}}
            await self._client.patch(PODS, name, body, namespace=_SPACE, subresource="status", kind=STRATEGIC)

    async def _pods(self):
        return (await self._client.list(PODS, namespace=_SPACE)).items

    async def _entries(self):
        found = await self._client.get(GUARD_POLICIES, _SET, namespace=_SPACE)
        return [one for one in found.get("status", {}).get("pods", ()) if one["state"] != "Released"]

    async def _is_held(self, uid):
        return any(one["uid"] == uid for one in await self._entries())

    async def _is_whole(self):
        ready = [pod for pod in await self._pods() if pod["status"].get("phase") == "Running"]
        return len(ready) == _REPLICAS and not await self._entries()

    async def _until(self, condition):
        async with asyncio.timeout(120):
            while not await condition():
                await asyncio.sleep(0.1)
