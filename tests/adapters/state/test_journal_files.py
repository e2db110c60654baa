import asyncio
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from msgspec import structs
from support.agents import shutdown_records

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.state.agent_lock import AgentLock
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import InvalidInput, LastcallError, NotPermitted, RefusedForSafety
from lastcall.model.shutdown import ShutdownStarted, from_lines, to_line

AS_ROOT = os.geteuid() == 0
FIRST = b'{"event":"first"}\n'


def journal_path(state_dir, name):
    return state_dir / "shutdowns" / f"{name}.jsonl"


def aged(path, seconds):
    os.utime(path, ns=(seconds * 10**9, seconds * 10**9))


def start(*arguments, **options):
    """A program of ours in a process of its own, which the caller ends."""
    return subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True, **options)


def fill(journal):
    for _ in range(100):
        journal.append(b"y" * 999 + b"\n")


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


# -- what is written is read again -------------------------------------------------------------------------------------


@pytest.fixture
def journals(tmp_path):
    return JournalFiles(tmp_path)


async def test_every_event_is_read_as_it_was_written(journals):
    events = shutdown_records.dozen()
    journal = journals.create("one")
    for event in events:
        journal.append(to_line(event))
    await journal.sync()
    latest = journals.latest()
    assert latest is not None
    assert latest[0] == "one"
    assert from_lines(latest[1]) == events


def test_nothing_is_there_at_first(tmp_path):
    journals = JournalFiles(tmp_path / "not" / "made")
    assert journals.latest() is None
    assert journals.list_ids() == []
    assert not (tmp_path / "not").exists()


def test_a_new_journal_does_not_replace_one_of_its_name(tmp_path):
    journals = JournalFiles(tmp_path)
    journals.create("one").append(FIRST)
    with pytest.raises(FileExistsError):
        journals.create("one")
    assert journals.read_lines("one") == [FIRST[:-1]]


def test_no_child_inherits_the_journal(tmp_path):
    journal = JournalFiles(tmp_path).create("one")
    listing = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if int(n) > 2 "
    listing += "and os.path.exists(f'/proc/self/fd/{n}')])"
    seen = subprocess.run([sys.executable, "-c", listing], capture_output=True, check=True, text=True, close_fds=False)
    journal.close()
    assert "one.jsonl" not in seen.stdout


# -- torn lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", [b"{", b'{"event":"second"}', b"\0\0\0\0", b'{"ev\0\0'])
def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path, tail):
    journals = JournalFiles(tmp_path)
    journals.create("one").append(FIRST)
    with journal_path(tmp_path, "one").open("ab") as file:
        file.write(tail)
    assert journals.latest() == ("one", [FIRST[:-1]])
    journals.reopen("one").append(b"third\n")
    assert journal_path(tmp_path, "one").read_bytes() == FIRST + b"third\n"


def test_a_full_disk_leaves_whole_lines(tmp_path):
    """The limit on a file's size stops the write in the middle of a line, as a full disk does."""
    program = f"""
import resource, sys
from pathlib import Path
from lastcall.adapters.state.journal_files import JournalFiles
journal = JournalFiles(Path({str(tmp_path)!r})).create("one")
resource.setrlimit(resource.RLIMIT_FSIZE, (250, resource.RLIM_INFINITY))
written = 0
try:
    while True:
        journal.append(b"x" * 99 + b"\\n")
        written += 1
except OSError as error:
    print(written, error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append(b"there is room again\\n")
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY, "the hard limit is the test's own"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.split()[0] == "2"
    assert JournalFiles(tmp_path).read_lines("one") == [b"x" * 99, b"x" * 99, b"there is room again"]


@pytest.mark.skipif(not AS_ROOT, reason="needs root to mount a tiny tmpfs")
def test_a_disk_that_is_really_full(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tiny", tmp_path], check=False).returncode:
        pytest.skip("may not mount here")
    try:
        journals = JournalFiles(tmp_path)
        journals.prepare()
        journal = journals.create("one")
        with pytest.raises(OSError, match="No space left"):
            fill(journal)
        assert set(journals.read_lines("one")) == {b"y" * 999}
        assert journal_path(tmp_path, "one").read_bytes().endswith(b"y\n")
        with pytest.raises(LastcallError, match=f"{tmp_path}: No space left on device: make room"):
            journals.prepare()
        journal.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_writer_that_is_killed_leaves_a_journal_to_go_on_with(tmp_path):
    program = f"""
import asyncio
from pathlib import Path
from lastcall.adapters.state.journal_files import JournalFiles
async def main():
    journal = JournalFiles(Path({str(tmp_path)!r})).create("one")
    for number in range(10**9):
        journal.append(b'{{"number":%d,"filling":"%s"}}\\n' % (number, b"z" * (number % 4000)))
        if number % 500 == 0:
            await journal.sync()
            print(number, flush=True)
asyncio.run(main())
"""
    writer = start(program)
    try:
        synced = [int(writer.stdout.readline()) for _ in range(3)][-1]
        writer.send_signal(signal.SIGKILL)
    finally:
        end(writer)
    journals = JournalFiles(tmp_path)
    latest = journals.latest()
    assert latest is not None
    numbers = [json.loads(line)["number"] for line in latest[1]]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > synced
    journals.reopen("one").append(b"{}\n")
    assert len(journals.read_lines("one")) == len(numbers) + 1


# -- the disk ----------------------------------------------------------------------------------------------------------


async def test_those_who_wait_for_the_disk_together_share_its_turns(journals, monkeypatch):
    turns = []
    fdatasync = os.fdatasync

    def counted(descriptor):
        turns.append(os.fstat(descriptor).st_size)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)
    journal = journals.create("one")
    waiting = []
    for _ in range(50):
        journal.append(FIRST)
        waiting.append(asyncio.create_task(journal.sync()))
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert len(turns) < 50
    assert turns[-1] == 50 * len(FIRST), "the last to come were served by a turn that began after they came"
    before = len(turns)
    await journal.sync()
    assert len(turns) == before, "nothing was written since"


async def test_a_disk_that_fails_is_told_to_all_who_wait_and_asked_again_later(journals, monkeypatch):
    def broken(descriptor):
        raise OSError(5, "Input/output error")

    journal = journals.create("one")
    journal.append(FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        results = await asyncio.gather(journal.sync(), journal.sync(), return_exceptions=True)
    assert [type(result) for result in results] == [OSError, OSError]
    await journal.sync()


# -- which are kept ----------------------------------------------------------------------------------------------------


def test_the_newest_come_first_and_the_oldest_go(tmp_path):
    journals = JournalFiles(tmp_path, keep=3)
    for number, name in enumerate(["zeta", "alpha", "mid"]):
        journals.create(name).append(FIRST)
        aged(journal_path(tmp_path, name), 1000 + number)
    (tmp_path / "shutdowns" / "somebody's notes.txt").write_text("stay")
    (tmp_path / "shutdowns" / ".hidden.jsonl").write_text("stay")
    assert journals.list_ids() == ["mid", "alpha", "zeta"]
    journals.create("new")
    assert journals.list_ids() == ["new", "mid", "alpha"]
    assert (tmp_path / "shutdowns" / "somebody's notes.txt").exists()
    assert (tmp_path / "shutdowns" / ".hidden.jsonl").exists()


def test_the_one_that_was_written_last_is_the_latest(tmp_path):
    journals = JournalFiles(tmp_path)
    for number, name in enumerate(["first", "second"]):
        journals.create(name).append(FIRST)
        aged(journal_path(tmp_path, name), 1000 + number)
    journals.reopen("first").append(b"more\n")
    latest = journals.latest()
    assert latest is not None
    assert latest[0] == "first"


def begun(journals, name, boot, at):
    """A journal whose shutdown began at ``at`` in a boot."""
    started = next(event for event in shutdown_records.dozen() if isinstance(event, ShutdownStarted))
    journals.create(name).append(to_line(structs.replace(started, id=name, boot_id=boot, at=at)))


def test_those_of_this_boot_are_the_newest_though_the_clock_was_set_back_since_then(tmp_path):
    journals = JournalFiles(tmp_path, boot="this one")
    for number, (name, boot, at) in enumerate(
        [("second", "this one", 70.0), ("first", "this one", 9.0), ("before", "another", 500.0)]
    ):
        begun(journals, name, boot, at)
        aged(journal_path(tmp_path, name), 1000 + number)
    assert journals.list_ids() == ["second", "first", "before"]
    latest = journals.latest()
    assert latest is not None
    assert latest[0] == "second"


def test_the_kernels_boot_counts_if_no_other_is_named(tmp_path):
    journals = JournalFiles(tmp_path, keep=2)
    begun(journals, "now", boot_id(), 1.0)
    for number, name in enumerate(["future", "farther"]):
        begun(journals, name, "another", 2.0)
        aged(journal_path(tmp_path, name), 10**10 + number)
    assert journals.list_ids() == ["now", "farther"], "nor is it the one that is removed"


def test_what_cannot_be_told_of_a_journal_keeps_nobody_from_the_others(tmp_path):
    journals = JournalFiles(tmp_path, boot="this one")
    begun(journals, "good", "this one", 0.0)
    directory = journal_path(tmp_path, "good").parent
    for name, content in (("empty", b""), ("torn", b'{"event":"started","at'), ("bytes", b'"\xff\xfe\0"\n')):
        (directory / f"{name}.jsonl").write_bytes(content)
    (directory / "directory.jsonl").mkdir()
    assert journals.list_ids()[0] == "good"


@pytest.mark.parametrize("name", ["", ".", "..", "../evil", "a/b", "a\nb", "-rf", "x" * 101, "ü", "a\0"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    journals = JournalFiles(tmp_path)
    for verb in (journals.create, journals.reopen, journals.read_lines):
        with pytest.raises(InvalidInput, match="a shutdown's id is of at most 100"):
            verb(name)


# -- the state directory -----------------------------------------------------------------------------------------------


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


# -- the kubelet's state file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start_", "end_", "expected"),
    [
        (None, None, {"startTime": "0001-01-01T00:00:00Z", "endTime": "0001-01-01T00:00:00Z"}),
        (1795262824.5, None, {"startTime": "2026-11-21T12:07:04.5Z", "endTime": "0001-01-01T00:00:00Z"}),
        (1795262820.0, 1795262824.25, {"startTime": "2026-11-21T12:07:00Z", "endTime": "2026-11-21T12:07:04.25Z"}),
    ],
)
def test_the_state_file_is_what_the_kubelet_would_write(tmp_path, start_, end_, expected):
    asyncio.run(JournalFiles(tmp_path).write_kubelet_state(start_, end_))
    path = tmp_path / "graceful_node_shutdown_state"
    assert path.read_text() == json.dumps(expected, separators=(",", ":"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    datetime.fromisoformat(expected["startTime"])


def test_a_state_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    journals = JournalFiles(tmp_path)
    asyncio.run(journals.write_kubelet_state(1.0, None))
    before = (tmp_path / "graceful_node_shutdown_state").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(journals.write_kubelet_state(2.0, 3.0))
    assert (tmp_path / "graceful_node_shutdown_state").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


# -- one agent ---------------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from lastcall.adapters.state.agent_lock import AgentLock
with AgentLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_agent_is_refused_and_the_first_named(tmp_path):
    first = start(HOLDER, str(tmp_path))
    try:
        assert first.stdout.readline() == "held\n"
        with pytest.raises(RefusedForSafety, match=rf"\(pid {first.pid}\)") as refused:
            AgentLock(tmp_path).acquire()
        assert refused.value.exit_code == 3
    finally:
        end(first)
    with AgentLock(tmp_path):
        assert (tmp_path / "agent.lock").read_text() == f"{os.getpid()}\n"


def test_the_lock_ends_with_its_holder_though_a_child_lives_on(tmp_path):
    program = HOLDER.replace("time.sleep(60)", "import subprocess; subprocess.Popen(['sleep', '60'], close_fds=False)")
    program = program.replace('print("held", flush=True)\n    ', "") + "    print(0, flush=True); time.sleep(60)"
    program = program.replace("subprocess.Popen(", "child = subprocess.Popen(").replace("print(0", "print(child.pid")
    holder = start(program, str(tmp_path))
    child = int(holder.stdout.readline())
    try:
        end(holder)
        os.kill(child, 0)
        with AgentLock(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_lock_can_be_given_back_and_taken_again(tmp_path):
    first, second = AgentLock(tmp_path), AgentLock(tmp_path)
    first.acquire()
    with pytest.raises(RefusedForSafety):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


def test_this_boot_has_one_name():
    assert boot_id() == boot_id()
    assert len(boot_id()) == 36


# -- other users of the machine ----------------------------------------------------------------------------------------


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


def test_nobody_else_can_open_a_lock_that_has_just_been_made(tmp_path, monkeypatch):
    """Who opens it before its mode is set can lock it afterwards."""
    made, before = [], os.umask(0)
    monkeypatch.setattr(os, "fchmod", lambda *_: made.extend(modes(tmp_path / "agent.lock")))
    try:
        with AgentLock(tmp_path):
            assert made == ["0o600"]
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


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to another user")
def test_a_lock_of_another_user_is_refused(tmp_path):
    (tmp_path / "agent.lock").touch()
    os.chown(tmp_path / "agent.lock", 65534, 65534)
    with pytest.raises(RefusedForSafety, match="agent.lock belongs to user 65534"):
        AgentLock(tmp_path).acquire()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").touch()
    (tmp_path / "agent.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LastcallError, match="agent.lock"):
        AgentLock(tmp_path).acquire()


def test_the_unit_closes_its_state_directory_to_others():
    unit = Path(__file__).parents[3] / "deploy/systemd/lastcall-agent.service"
    assert "StateDirectoryMode=0700" in unit.read_text().splitlines()
