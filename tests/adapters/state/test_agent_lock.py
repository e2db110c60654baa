"""One agent uses a state directory at a time, and no other user of the machine can take its lock."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from lastcall.adapters.state.agent_lock import AgentLock
from lastcall.errors import LastcallError, RefusedForSafety


def start(*arguments, **options):
    """A program of ours in a process of its own, which the caller ends."""
    return subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True, **options)


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


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


def modes(*paths):
    return [oct(stat.S_IMODE(path.stat().st_mode)) for path in paths]


def test_nobody_else_can_open_a_lock_that_has_just_been_made(tmp_path, monkeypatch):
    """Who opens it before its mode is set can lock it afterwards."""
    made, before = [], os.umask(0)
    monkeypatch.setattr(os, "fchmod", lambda *_: made.extend(modes(tmp_path / "agent.lock")))
    try:
        with AgentLock(tmp_path):
            assert made == ["0o600"]
    finally:
        os.umask(before)


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
