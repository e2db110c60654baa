"""The supervisor as a process, also as process 1 of a pid namespace, with shells as its agents."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lastcall.adapters.host import supervisor

PATIENCE = 60.0


class Supervised:
    """A supervisor and what its command has noted in a file, one word a line."""

    def __init__(self, directory, script, *, process_1=False):
        self._behind_unshare = process_1
        self.notes = directory / "notes"
        self.notes.touch()
        self.errors = directory / "errors"
        command = [sys.executable, "-I", "-S", supervisor.__file__, "/bin/sh", "-c", script, str(self.notes)]
        if process_1:
            command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, stderr=errors)

    def words(self):
        return self.notes.read_text().split()

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {what}: {self.words()} {self.errors.read_text()}"
            time.sleep(0.01)

    def close(self):
        """Ends it with what it supervises; behind unshare that is all of the namespace."""
        self.process.send_signal(signal.SIGKILL if self._behind_unshare else signal.SIGTERM)
        self.process.wait(PATIENCE)

    def inner_pid(self):
        """The supervisor's own process, behind unshare."""
        [child] = (int(word) for word in children(self.process.pid))
        return child


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.fixture
def supervise(tmp_path):
    made = []

    def start(script, **options):
        made.append(Supervised(tmp_path, script, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


LIVES = 'echo start >> "$0"; exec sleep 1000'


def test_an_agent_that_is_killed_is_started_again(supervise):
    program = supervise('echo $$ >> "$0"; exec sleep 1000')
    for lives in (1, 2, 3):
        program.until(lambda lives=lives: len(program.words()) == lives, f"life {lives}")
        os.kill(int(program.words()[-1]), signal.SIGKILL)
    program.until(lambda: len(program.words()) == 4, "the fourth life")
    assert "has ended with 137" in program.errors.read_text()
    os.kill(int(program.words()[-1]), signal.SIGKILL)


def test_sigterm_is_passed_on_and_the_exit_code_too(supervise):
    program = supervise('trap "echo term >> $0; exit 7" TERM; echo ready >> "$0"; while :; do sleep 0.01; done')
    program.until(lambda: program.words() == ["ready"], "the agent")
    program.process.terminate()
    assert program.process.wait(PATIENCE) == 7
    assert program.words() == ["ready", "term"], "and it is not started again"


def test_sighup_is_passed_on_and_stops_nothing(supervise):
    program = supervise('trap "echo hup >> $0" HUP; echo ready >> "$0"; while :; do sleep 0.01; done')
    program.until(lambda: program.words() == ["ready"], "the agent")
    program.process.send_signal(signal.SIGHUP)
    program.until(lambda: program.words() == ["ready", "hup"], "SIGHUP")
    assert program.process.poll() is None


def test_an_agent_that_ends_at_once_again_and_again_is_given_up(supervise):
    program = supervise('echo start >> "$0"; exit 2')
    assert program.process.wait(PATIENCE) == 2, "so that the kubelet shows it"
    assert len(program.words()) == supervisor.TRIES


def test_stopped_in_the_pause_before_a_restart(supervise):
    program = supervise('echo start >> "$0"; exit 3')
    program.until(lambda: len(program.words()) == supervisor.TRIES - 1, "the longest pause")
    program.process.terminate()
    assert program.process.wait(PATIENCE) == 3
    assert len(program.words()) == supervisor.TRIES - 1


def test_the_agents_signals_are_not_blocked(supervise):
    program = supervise('grep SigBlk /proc/self/status >> "$0"; exec sleep 1000')
    program.until(lambda: len(program.words()) == 2, "the mask")
    assert int(program.words()[1], 16) == 0
    program.process.terminate()
    assert program.process.wait(PATIENCE) == 143


def test_the_pipe_ends_with_the_supervisor_and_not_with_the_agent(supervise):
    """A process that outlives the agent reads it to its end."""
    reader = f'(read _ <&"${supervisor.PIPE_VARIABLE}"; echo over >> "$0") &'
    program = supervise(f'test -s "$0" || {{ {reader} }}; echo start >> "$0"; test -e "$0.stay" || exit 1; sleep 1000')
    program.until(lambda: program.words().count("start") == 2, "a second life")
    program.notes.with_name("notes.stay").touch()
    assert "over" not in program.words()
    program.process.kill()
    program.until(lambda: "over" in program.words(), "the pipe's end")


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="a pid namespace needs root and unshare"
)


@needs_root
def test_as_process_1_it_reaps_orphans_and_is_stopped_by_sigterm(supervise):
    orphan = '(sh -c "echo orphan >> $0" &) ; '
    program = supervise(
        f'{orphan} trap "exit 0" TERM; echo ready >> "$0"; while :; do sleep 0.01; done', process_1=True
    )
    program.until(lambda: sorted(program.words()) == ["orphan", "ready"], "the agent")
    inner = program.inner_pid()
    program.until(lambda: len(children(inner)) == 1, "the orphan's end")
    os.kill(inner, signal.SIGTERM)
    assert program.process.wait(PATIENCE) == 0


@needs_root
def test_as_process_1_it_restarts_the_agent(supervise):
    program = supervise(LIVES, process_1=True)
    for lives in (1, 2):
        program.until(lambda lives=lives: len(program.words()) == lives, f"life {lives}")
        inner = program.inner_pid()
        program.until(lambda inner=inner: len(children(inner)) == 1, "the child")
        os.kill(int(children(inner)[0]), signal.SIGKILL)
    program.until(lambda: len(program.words()) == 3, "the third life")
