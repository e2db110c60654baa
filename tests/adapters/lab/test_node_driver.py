"""The node's part of the toy driver, with real directories and links."""

import pytest
from support.lab.volume_kubelets import pod

from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import Unavailable
from lastcall_lab.volumes import DRIVER
from lastcall_lab.volumes.node_driver import NodeDriver
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_events import VolumeEventType, find_violations
from lastcall_lab.volumes.volume_store import DirectoryVolumes


class OneVolume:
    """A client that knows one volume."""

    def __init__(self, driver=DRIVER):
        self.driver = driver

    async def get(self, resource, name):
        assert (resource.plural, name) == ("persistentvolumes", "pv")
        return {"spec": {"csi": {"driver": self.driver, "volumeHandle": "handle"}}}


POD = {**pod("web"), "metadata": {"uid": "u"}}
CLAIM = {"spec": {"volumeName": "pv"}}


@pytest.fixture
def storage(tmp_path):
    return Storage(DirectoryVolumes(tmp_path / "volumes"), SystemClock())


async def test_a_volume_appears_where_the_kubelet_wants_it_and_goes_again(storage, tmp_path):
    node, path = NodeDriver(storage, "n1", OneVolume()), tmp_path / "pods" / "u" / "data"
    with pytest.raises(Unavailable, match="does not have it attached"):
        await node.mount(POD, CLAIM, path)
    await storage.attach("handle", "n1", shared=False)
    await node.mount(POD, CLAIM, path)
    await node.mount(POD, CLAIM, path)
    (path / "file").write_text("mine")
    assert (tmp_path / "volumes" / "handle" / "file").read_text() == "mine"
    await storage.cut("n1")
    with pytest.raises(FileNotFoundError):
        (path / "file").read_text()
    await storage.mend("n1")
    assert (path / "file").read_text() == "mine"
    await node.unmount(POD, CLAIM, path)
    await node.unmount(POD, CLAIM, path)
    assert not path.is_symlink()
    await storage.detach("handle", "n1")
    whats = [
        VolumeEventType.ATTACHED,
        VolumeEventType.MOUNTED,
        VolumeEventType.CUT,
        VolumeEventType.MENDED,
        VolumeEventType.UNMOUNTED,
        VolumeEventType.DETACHED,
    ]
    assert [one.what for one in storage.records] == whats
    assert find_violations(storage.records) == []


async def test_what_is_detached_is_out_of_reach_where_it_was_mounted(storage, tmp_path):
    node, path = NodeDriver(storage, "n1", OneVolume()), tmp_path / "data"
    await storage.attach("handle", "n1", shared=False)
    await node.mount(POD, CLAIM, path)
    await storage.detach("handle", "n1")
    with pytest.raises(FileNotFoundError):
        (path / "file").write_text("too late")
    assert len(find_violations(storage.records)) == 1


async def test_volumes_of_other_drivers(storage, tmp_path):
    node = NodeDriver(storage, "n1", OneVolume("other.example.com"))
    with pytest.raises(Unavailable, match=r"driver name other\.example\.com not found in the list of registered CSI"):
        await node.mount(POD, CLAIM, tmp_path / "data")
