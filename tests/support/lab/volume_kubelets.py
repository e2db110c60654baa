"""Kubelets in little that know volumes: their pods run once their volumes are mounted, write, and go when they are told."""

from pathlib import Path

from support.lab.scripted_nodes import Beats

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import CLAIMS, NODES, PODS, VOLUMES
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import ApiFailure, Unavailable
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.volumes import DRIVER, STORAGE_CLASS

LOOK = 0.5


class Kubelets(Beats):
    """Nodes of a cluster with a storage. A silent node is cut off: it does nothing that others see, but goes on writing."""

    def __init__(self, cluster, storage):
        super().__init__(cluster)
        self.storage = storage
        self.off = set()
        self._work = OrderedTaskGroup()
        self._mounted = {}

    async def begin(self, *names):
        """Starts the nodes."""
        await self.start(*names)
        for name in names:
            self._work.start(self._run(name), f"kubelet of {name}")

    async def end(self):
        """The end of all."""
        await self._work.cancel()
        await self.stop()

    def pull(self, name):
        """The node's power is gone."""
        self.silent.add(name)
        self.off.add(name)
        self.storage.drop_mounts(name)

    async def _run(self, name):
        while True:
            await self.cluster.clock.sleep(LOOK)
            if name not in self.off:
                await self._write(name)
            if name not in self.silent:
                for pod in self.cluster.all(PODS):
                    if pod["spec"].get("nodeName") == name:
                        await self._look(name, pod)

    async def _look(self, name, pod):
        try:
            if pod["metadata"].get("deletionTimestamp"):
                await self._finish(name, pod)
            elif pod["status"].get("phase") == "Pending" and await self._mount(name, pod):
                await self._started(pod)
        except (ApiFailure, Unavailable):
            pass

    async def _mount(self, name, pod):
        handles = self._handles(pod)
        if None in handles:
            return False
        in_use = {handle for one in self._mounted.values() for handle in one} | set(handles)
        await self.using(name, *(f"kubernetes.io/csi/{DRIVER}^{handle}" for handle in sorted(in_use)))
        attached = {one["name"] for one in self.cluster.get(NODES, name)["status"].get("volumesAttached", ())}
        if not all(f"kubernetes.io/csi/{DRIVER}^{handle}" in attached for handle in handles):
            return False
        uid = pod["metadata"]["uid"]
        for handle in handles:
            await self.storage.mount(handle, name, uid, Path("/pods") / uid)
        self._mounted[name, uid] = handles
        return True

    async def _started(self, pod):
        now = timestamp(self.cluster.clock.wall())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        containers = [{"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "started": True}]
        containers[0]["state"] = {"running": {"startedAt": now}}
        status = {"phase": "Running", "conditions": [ready], "containerStatuses": containers}
        name = pod["metadata"]["name"]
        await self.cluster.client.patch(
            PODS, name, {"status": status}, namespace="default", subresource="status", kind=STRATEGIC
        )

    async def _finish(self, name, pod):
        uid = pod["metadata"]["uid"]
        for handle in self._mounted.pop((name, uid), ()):
            await self.storage.unmount(handle, name, uid, Path("/pods") / uid)
        left = sorted({handle for place, one in self._mounted.items() if place[0] == name for handle in one})
        await self.using(name, *(f"kubernetes.io/csi/{DRIVER}^{handle}" for handle in left))
        await self.confirm(pod["metadata"]["name"])

    async def _write(self, name):
        for (node, uid), handles in list(self._mounted.items()):
            for handle in handles if node == name else ():
                try:
                    await self.storage.write(handle, name, uid, "log", name.encode())
                except Unavailable:
                    pass

    def _handles(self, pod):
        names = [
            one["persistentVolumeClaim"]["claimName"]
            for one in pod["spec"].get("volumes") or ()
            if "persistentVolumeClaim" in one
        ]
        volumes = [
            self.cluster.get(VOLUMES, self.cluster.get(CLAIMS, name)["spec"].get("volumeName")) for name in names
        ]
        return [volume["spec"]["csi"]["volumeHandle"] if volume else None for volume in volumes]


def storage_class(name=STORAGE_CLASS, mode="WaitForFirstConsumer", policy="Delete"):
    """The lab's own."""
    return {"metadata": {"name": name}, "provisioner": DRIVER, "volumeBindingMode": mode, "reclaimPolicy": policy}


def claim(name, *, mode="ReadWriteOnce", of=STORAGE_CLASS):
    """One gibibyte."""
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": of}
    return {"metadata": {"name": name}, "spec": spec}


def pod(name, *claims, **spec):
    """A pod that uses claims."""
    volumes = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": one}} for n, one in enumerate(claims)]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes, **spec},
    }
