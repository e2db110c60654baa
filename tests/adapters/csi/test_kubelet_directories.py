"""A kubelet's directories of volumes: kinds that are not CSI's, and files that are damaged."""

import json

import pytest

from lastcall.adapters.csi.kubelet_directories import KubeletDirectories

DATA = {
    "driverName": "d.example.com",
    "volumeHandle": "vol-1",
    "specVolID": "pv-1",
    "volumeLifecycleMode": "Persistent",
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "pods/u1/volumes").mkdir(parents=True)
    return tmp_path


def add(root, plugin, name, data=None, *, uid="u1"):
    directory = root / "pods" / uid / "volumes" / plugin / name
    directory.mkdir(parents=True)
    if data is not None:
        (directory / "vol_data.json").write_text(data if isinstance(data, str) else json.dumps(data))
    return directory


def listed(root, uid="u1"):
    return KubeletDirectories(str(root)).list_volumes(uid)


def test_a_volume_of_csi(root):
    directory = add(root, "kubernetes.io~csi", "pv-1", DATA)
    [volume] = listed(root)
    assert (volume.driver, volume.handle, volume.name, volume.path) == (
        "d.example.com",
        "vol-1",
        "pv-1",
        str(directory),
    )
    assert not volume.problem


def test_volumes_that_no_other_node_can_mount_do_not_count(root):
    for plugin in ("configmap", "downward-api", "empty-dir", "projected", "secret"):
        add(root, f"kubernetes.io~{plugin}", "v")
    assert listed(root) == []


@pytest.mark.parametrize(
    "plugin", ["kubernetes.io~nfs", "kubernetes.io~iscsi", "kubernetes.io~local-volume", "own~flex"]
)
def test_a_volume_of_another_kind_cannot_be_unmounted(root, plugin):
    add(root, plugin, "pv-1")
    [volume] = listed(root)
    assert volume.problem == f"the agent cannot unmount volumes of {plugin.replace('~', '/')}"
    assert volume.title == f"pv-1 ({plugin.replace('~', '/')})"


def add_device(root, plugin, name, data=None, *, uid="u1"):
    directory = root / "pods" / uid / "volumeDevices" / plugin
    directory.mkdir(parents=True)
    (directory / name).symlink_to("/nowhere")
    if data is not None:
        file = root / "plugins/kubernetes.io/csi/volumeDevices" / name / "data" / "vol_data.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(data if isinstance(data, str) else json.dumps(data))
    return directory / name


def test_a_block_device_of_csi(root):
    link = add_device(root, "kubernetes.io~csi", "pv-1", DATA)
    [volume] = listed(root)
    assert (volume.driver, volume.handle, volume.name, volume.path) == ("d.example.com", "vol-1", "pv-1", str(link))
    assert (volume.is_block, volume.problem) == (True, "")
    devices = root / "plugins/kubernetes.io/csi/volumeDevices"
    directories = KubeletDirectories(str(root))
    assert directories.target_path(volume) == devices / "publish/pv-1/u1"
    assert directories.stage_path(volume) == devices / "staging/pv-1"
    assert directories.kubelet_mounts(volume) == devices / "pv-1/dev/u1"


def test_a_block_device_of_another_kind_cannot_be_unmapped(root):
    add_device(root, "kubernetes.io~iscsi", "pv-1")
    [volume] = listed(root)
    assert volume.problem == "the agent cannot unmap block devices of kubernetes.io/iscsi"


@pytest.mark.parametrize("data", [None, "{", {"driverName": "d"}])
def test_a_block_device_with_a_damaged_file_is_a_problem(root, data):
    add_device(root, "kubernetes.io~csi", "pv-1", data)
    [volume] = listed(root)
    assert "pv-1/data/vol_data.json" in volume.problem


def test_block_devices_of_all_pods_are_found(root):
    add_device(root, "kubernetes.io~csi", "pv-1", DATA)
    add_device(root, "kubernetes.io~csi", "pv-1", uid="u2")
    add_device(root, "kubernetes.io~csi", "left-over", uid="u3")
    found = KubeletDirectories(str(root)).list_csi_volumes()
    assert [(one.uid, one.name, one.is_block) for one in found] == [("u1", "pv-1", True), ("u2", "pv-1", True)]


@pytest.mark.parametrize(
    "data",
    [None, "", "{", "[]", "7", "{}", {"driverName": "d"}, {**DATA, "volumeHandle": ""}, {**DATA, "driverName": 7},
     {**DATA, "driverName": "../../d"}],
)  # fmt: skip
def test_a_damaged_file_is_a_problem_and_no_traceback(root, data):
    add(root, "kubernetes.io~csi", "pv-1", data)
    [volume] = listed(root)
    assert "vol_data.json" in volume.problem
    assert (volume.driver, volume.unique_name) == ("", "")


def test_the_directory_of_another_pod_may_be_of_any_volume_if_its_file_is_damaged(root):
    add(root, "kubernetes.io~csi", "pv-1", DATA)
    add(root, "kubernetes.io~csi", "pv-2", "{", uid="u2")
    add(root, "kubernetes.io~csi", "left-over", uid="u3")
    found = KubeletDirectories(str(root)).list_csi_volumes()
    assert [(one.uid, one.driver) for one in found] == [("u1", "d.example.com"), ("u2", "")]


def test_a_directory_is_not_removed_with_what_the_kubelet_does_not_write(root):
    directory = add(root, "kubernetes.io~csi", "pv-1", DATA)
    (directory / "mount").mkdir()
    (directory / "mount" / "written by the pod").touch()
    [volume] = listed(root)
    with pytest.raises(OSError, match="not empty"):
        KubeletDirectories(str(root)).remove_volume(volume, staged=False)
    assert (directory / "mount" / "written by the pod").exists()
    assert (directory / "vol_data.json").exists()
