"""The state directory: what is wrong with one is reported, and nobody else can read what it keeps."""

import asyncio
import os
import stat
import subprocess
from pathlib import Path

import pytest

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.state.agent_lock import AgentLock
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import LastcallError, NotPermitted, RefusedForSafety

AS_ROOT = os.geteuid() == 0


def test_a_file_in_the_place_of_the_directory_is_told(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(LastcallError, match=f"{tmp_path}/state: not a directory"):
        JournalFiles(tmp_path / "state").prepare()
    with pytest.raises(LastcallError, match="not a directory"):
        JournalFiles(tmp_path / "state" / "below").prepare()
    with pytest.raises(LastcallError, match="not a directory"):
        JournalFiles(tmp_path / "state").list_ids()


@pytest.mark.skipif(not AS_ROOT, reason="needs root to mount a directory read-only")
def test_a_read_only_directory_is_told(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tiny", tmp_path], check=False).returncode:
        pytest.skip("may not mount here")
    try:
        with pytest.raises(NotPermitted, match=f"{tmp_path}: Read-only file system"):
            JournalFiles(tmp_path).prepare()
        with pytest.raises(NotPermitted, match="agent.lock: Read-only file system"):
            AgentLock(tmp_path).acquire()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere; the read-only mount is tested instead")
def test_a_directory_of_somebody_else_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(NotPermitted, match=f"{tmp_path}/state: Permission denied"):
        JournalFiles(tmp_path / "state").prepare()


@pytest.mark.parametrize(
    "files", [["cpu_manager_state"], ["plugins_registry/"], ["config.yaml", "pods/"], ["pki/", "pods/"]]
)
def test_the_kubelets_own_directory_is_refused(tmp_path, files):
    for name in files:
        path = tmp_path / "kubelet" / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text("")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "kubelet")
    for place in (tmp_path / "kubelet", link):
        with pytest.raises(RefusedForSafety, match="kubelet's own directory"):
            JournalFiles(place)
    assert JournalFiles(tmp_path / "kubelet" / "lastcall").list_ids() == []


def test_the_kubelets_directory_is_refused_by_its_name(tmp_path):
    with pytest.raises(RefusedForSafety, match="/var/lib/kubelet"):
        JournalFiles(Path("/var/lib/kubelet"))
    (tmp_path / "link").symlink_to("/var/lib/kubelet")
    with pytest.raises(RefusedForSafety):
        JournalFiles(tmp_path / "link")


def test_this_boot_has_one_name():
    assert boot_id() == boot_id()
    assert len(boot_id()) == 36


def modes(*paths):
    return [oct(stat.S_IMODE(path.stat().st_mode)) for path in paths]


def test_nobody_else_can_read_what_is_kept_or_lock_the_lock(tmp_path):
    state, before = tmp_path / "state", os.umask(0)
    try:
        journals = JournalFiles(state)
        journals.prepare()
        journals.create("one")
        asyncio.run(journals.write_kubelet_state(1.0, None))
        with AgentLock(state):
            files = [state / "agent.lock", state / "shutdowns" / "one.jsonl", state / "graceful_node_shutdown_state"]
            assert modes(state, state / "shutdowns") == ["0o700"] * 2
            assert modes(*files) == ["0o600"] * 3
    finally:
        os.umask(before)


def test_nobody_else_can_read_what_is_made_anew_after_it_was_removed(tmp_path):
    state, before = tmp_path / "state", os.umask(0)
    try:
        JournalFiles(state).create("one")
        assert modes(state, state / "shutdowns") == ["0o700"] * 2
    finally:
        os.umask(before)


def test_what_an_earlier_version_made_is_closed_to_others(tmp_path):
    state = tmp_path / "state"
    (state / "shutdowns").mkdir(parents=True)
    (state / "agent.lock").touch()
    for path, mode in ((state, 0o755), (state / "agent.lock", 0o644)):
        path.chmod(mode)
    JournalFiles(state).prepare()
    with AgentLock(state):
        assert modes(state, state / "agent.lock") == ["0o700", "0o600"]


def test_a_directory_that_holds_other_things_keeps_its_mode(tmp_path):
    """Such as /tmp, for whoever gives it as --state-dir."""
    (tmp_path / "somebody-elses").touch()
    tmp_path.chmod(0o1777)
    JournalFiles(tmp_path).prepare()
    JournalFiles(tmp_path).prepare()
    assert modes(tmp_path) == ["0o1777"]


def test_the_unit_closes_its_state_directory_to_others():
    unit = Path(__file__).parents[3] / "deploy/systemd/lastcall-agent.service"
    assert "StateDirectoryMode=0700" in unit.read_text().splitlines()
