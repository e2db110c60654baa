"""The static pods of one node: each runs as long as its manifest is there, and has a mirror pod at the API server."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from lastcall.adapters.kube.informer import ChangeKind
from lastcall.adapters.kube.resources import PODS, Object
from lastcall.errors import LastcallError, NotFound
from lastcall.model.pods import FINISHED
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.pod.pod_worker import PodWorker
from lastcall_lab.kubelet.spec import static_pods

CHECK_SECONDS = 1.0
"""Seconds between two looks at the manifests and their mirror pods. A kubelet hears of changes by inotify."""

log = logging.getLogger(__name__)


class ManifestSource(Protocol):
    """The manifests on the node's disk (``manifest_files.ManifestFiles``)."""

    async def read(self) -> Sequence[Object]:
        """The static pods, as ``spec.static_pods.static_pod`` makes them."""
        ...


class MirrorPods:
    """Without ``manifests`` the kubelet knows no static pods, and takes a mirror pod for any other pod.

    ``workers`` are the node's, by uid; ``start`` gets a mirror pod whose static pod has no worker. A static pod starts
    when the API server has its mirror pod, since a container of the lab needs the list of Services in any case; a
    kubelet starts it earlier.
    """

    def __init__(
        self,
        manifests: ManifestSource | None,
        means: KubeletDeps,
        *,
        workers: Mapping[str, PodWorker],
        start: Callable[[Object], None],
    ) -> None:
        self._manifests = manifests
        self._means = means
        self._workers = workers
        self._start = start
        self._wanted: dict[str, Object] = {}
        self._mirrors: dict[tuple[str, str], Object] = {}
        self._told = ""

    @property
    def is_used(self) -> bool:
        """Whether the kubelet knows static pods."""
        return self._manifests is not None

    def is_mirror(self, pod: Object) -> bool:
        """Whether a pod of the API shows a static pod of this node."""
        return self.is_used and bool(static_pods.mirrored_uid(pod))

    def has_manifest(self, uid: str) -> bool:
        """Whether the manifest of the static pod with this uid is there."""
        return uid in self._wanted

    async def read_manifests(self) -> None:
        """Reads the manifests, without any other effect."""
        if self._manifests:
            self._wanted = {pod["metadata"]["uid"]: pod for pod in await self._manifests.read()}

    def handle_change(self, kind: ChangeKind, mirror: Object) -> None:
        """Takes a change of a mirror pod over. Its deletion ends no container; ``run`` creates it again."""
        worker, known = self._workers.get(static_pods.mirrored_uid(mirror)), self._mirrors.get(_key(mirror))
        if kind is ChangeKind.DELETED:
            if known and known["metadata"]["uid"] == mirror["metadata"]["uid"]:
                del self._mirrors[_key(mirror)]
            if worker and worker.is_withdrawn:
                worker.mark_mirror_gone()
            return
        if known is None or _version(known) < _version(mirror):
            self._mirrors[_key(mirror)] = mirror
        if worker:
            worker.update(mirror)

    async def run(self) -> None:
        """Follows the manifests until cancelled; failures are logged, and tried again."""
        while True:
            try:
                await self.read_manifests()
                await self._reconcile()
                self._told = ""
            except LastcallError as error:
                if str(error) != self._told:
                    log.warning("static pods: %s", error)
                self._told = str(error)
            await self._means.clock.sleep(CHECK_SECONDS)

    async def _reconcile(self) -> None:
        for uid, worker in list(self._workers.items()):
            if worker.is_static and uid not in self._wanted and not worker.is_withdrawn:
                worker.withdraw()
        for mirror in list(self._mirrors.values()):
            if not (self._wanted.keys() | self._workers.keys()) & {static_pods.mirrored_uid(mirror)}:
                await self._delete(mirror)
        for uid, pod in self._wanted.items():
            if uid in self._workers or not any(
                worker.namespaced_name == _key(pod) for worker in self._workers.values()
            ):
                await self._keep(uid, pod)

    async def _keep(self, uid: str, pod: Object) -> None:
        """Makes sure of the mirror pod, then starts the static pod if it is not there.

        A mirror pod that is being deleted, or has ended in an earlier run of the kubelet, is made anew
        (``pkg/kubelet/kubelet.go: tryReconcileMirrorPods``).
        """
        mirror = self._mirrors.get(_key(pod))
        has_worker = uid in self._workers
        if mirror and (mirror["metadata"].get("deletionTimestamp") or (not has_worker and _has_finished(mirror))):
            await self._delete(mirror)
            mirror = None
        if mirror is None and "uid" in self._means.node.known["metadata"]:
            wanted = static_pods.mirror_pod(pod, self._means.node.known)
            mirror = await self._means.client.create(PODS, wanted, namespace=pod["metadata"]["namespace"])
            self.handle_change(ChangeKind.ADDED, mirror)
        if mirror and not has_worker:
            self._start(mirror)

    async def _delete(self, mirror: Object) -> None:
        metadata = mirror["metadata"]
        try:
            await self._means.client.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], grace=0, uid=metadata["uid"]
            )
        except NotFound:
            pass
        self._mirrors.pop(_key(mirror), None)


def _key(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _version(pod: Object) -> int:
    return int(pod["metadata"]["resourceVersion"])


def _has_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED
