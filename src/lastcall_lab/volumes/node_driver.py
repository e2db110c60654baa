"""The node part of the toy driver, called by a kubelet (``kubelet.volume_port.Volumes``)."""

from pathlib import Path

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VOLUMES, Object
from lastcall.errors import Unavailable
from lastcall_lab.volumes import DRIVER
from lastcall_lab.volumes.storage import Storage


class NodeDriver:
    """The driver on one node; ``client`` is its kubelet's. It remembers which volume it has mounted where."""

    def __init__(self, storage: Storage, node: str, client: Client) -> None:
        self._storage = storage
        self._node = node
        self._client = client
        self._handles: dict[Path, str] = {}

    async def mount(self, pod: Object, claim: Object, path: Path) -> None:
        """Links the volume's directory at ``path``. Unavailable if the volume is not attached here, or is to be a device."""
        if claim["spec"].get("volumeMode") == "Block":
            raise Unavailable(f"the volumes of {DRIVER} are directories: it has no block devices")
        name = claim["spec"]["volumeName"]
        volume = await self._client.get(VOLUMES, name)
        source = volume["spec"].get("csi") or {}
        if source.get("driver") != DRIVER:
            raise Unavailable(f"driver name {source.get('driver', '')} not found in the list of registered CSI drivers")
        uid, read_only = pod["metadata"]["uid"], bool(source.get("readOnly"))
        handle = source["volumeHandle"]
        await self._storage.mount(handle, self._node, uid, path, read_only=read_only)
        self._handles[path] = handle

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """Removes the link. For a mount of an earlier run it uses the volume's name, as for all provisioned ones."""
        handle = self._handles.get(path, claim["spec"]["volumeName"])
        await self._storage.unmount(handle, self._node, pod["metadata"]["uid"], path)
        self._handles.pop(path, None)
