"""What is written to a journal is read again: whole lines, the newest journal first, whatever ended its writer."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys

import pytest
from msgspec import structs
from support.agents import shutdown_records

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import InvalidInput, LastcallError
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
