"""The mount table as the kernel writes it."""

from pathlib import Path

import pytest

from lastcall.adapters.csi.mount_table import (
    MountPoint,
    is_below,
    mounts_at,
    mounts_below,
    parse_mounts,
    shares_filesystem,
)
from lastcall.model.node_volumes import Filesystem

TABLE = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
46 22 8:16 / /k/plugins/d/globalmount rw shared:4 master:2 - ext4 /dev/sdb rw
47 22 8:16 / /k/pods/u1/mount rw shared:4 - ext4 /dev/sdb rw
48 22 8:16 /a\040b /k/pods/u1/sub\040path\134x rw - ext4 /dev/sdb rw
49 22 8:16 /ab /mnt rw - ext4 /dev/sdb rw
"""
MOUNTS = parse_mounts(TABLE)
DISK = Filesystem(device="8:16", root="/")


def test_paths_and_roots_are_unescaped():
    assert MOUNTS[3] == MountPoint(path="/k/pods/u1/sub path\\x", filesystem=Filesystem(device="8:16", root="/a b"))


def test_mounts_at_and_below_a_path():
    assert [mount.path for mount in mounts_at(MOUNTS, "/k/pods/u1/mount")] == ["/k/pods/u1/mount"]
    assert [mount.path for mount in mounts_below(MOUNTS, "/k/pods/u1")] == [MOUNTS[2].path, MOUNTS[3].path]
    assert list(mounts_below(MOUNTS, "/k/pod")) == []


@pytest.mark.parametrize(
    ("path", "directory", "below"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/a/b", False), ("/a", "/", True)],
)
def test_below(path, directory, below):
    assert is_below(path, directory) is below


@pytest.mark.parametrize(
    ("root", "shared"),
    [("/", [1, 2, 3, 4]), ("/a b", [3]), ("/a", []), ("/ab", [4])],
)
def test_a_mount_shares_a_directory_of_a_file_system_with_the_same_one_and_those_above(root, shared):
    known = [Filesystem(device="8:16", root=root)]
    assert [index for index, mount in enumerate(MOUNTS) if shares_filesystem(mount, known)] == shared


def test_another_device_is_another_file_system():
    assert not shares_filesystem(MOUNTS[0], [DISK])


def test_a_table_that_is_none():
    with pytest.raises(ValueError, match="no line of mountinfo"):
        parse_mounts("a b c\n")


def test_the_table_of_this_process():
    assert "/" in {mount.path for mount in parse_mounts(Path("/proc/self/mountinfo").read_text())}
