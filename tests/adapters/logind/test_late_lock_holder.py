"""A holder that was not ready when its agent was killed: nothing but a look later on tells which process it is."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from support.host.locks import Lock, a_keeper, a_lock, ended_with_test, gone, killed_agent, patience  # noqa: F401  (fixtures)
from support.host.logind import eventually

from lastcall.adapters.logind import holder_process, lock_holder
from lastcall.errors import Unavailable

LATE = """
import os, socket, sys, time
sys.path.insert(0, {directory!r})
while not os.path.exists({gate!r}):
    time.sleep(0.01)
import lock_holder
if {hangs}:
    listener = socket.socket(fileno=lock_holder.LISTENER)
    listener.listen(64)
    time.sleep(1000)
lock_holder.main()
"""
"""A holder that begins to listen when there is the gate, and does no more if it hangs."""


@pytest.fixture
def late(monkeypatch, tmp_path, lock, ended_with_test):  # noqa: F811
    """Has an agent killed before its holder has begun to listen; gives back the holder's number and the gate."""

    async def late(*, hangs):
        gate, program = tmp_path / "gate", tmp_path / "late.py"
        directory = str(Path(lock_holder.__file__).parent)
        program.write_text(LATE.format(directory=directory, gate=str(gate), hangs=hangs))
        monkeypatch.setattr(holder_process, "_PROGRAM", program)
        await asyncio.to_thread(killed_agent, tmp_path, lock.writer, program=program)
        return ended_with_test(*lock.holders()), gate

    return late


async def test_a_holder_that_was_not_ready_when_it_was_found_and_hangs_is_killed_too(keep, lock, late):
    _, gate = await late(hangs=True)
    assert await keep.recover()
    gate.touch()
    assert await eventually(known(keep), True)
    await keep.release()
    assert lock.gone()
    assert not keep.is_held


async def test_a_holder_that_hangs_before_it_is_ready_counts_as_held_until_it_ends(keep, lock, late):
    pid, _ = await late(hangs=True)
    assert await keep.recover()
    with pytest.raises(Unavailable, match="cannot be identified"):
        await keep.release()
    assert keep.is_held
    assert not lock.gone()
    os.kill(pid, signal.SIGKILL)
    await keep.release()
    assert await gone(lock), "the kernel may close the socket before the lock"
    assert not keep.is_held


async def test_a_holder_that_hangs_before_it_is_ready_is_not_hidden_by_another(keep, lock, late, caplog):
    other = Lock()
    pid, gate = await late(hangs=False)
    assert await keep.recover()
    await keep.keep_lock(other.writer)
    assert "cannot be replaced" in caplog.text
    assert lock.holders() == [pid]
    gate.touch()
    assert await eventually(known(keep), True)
    await keep.release()
    assert lock.gone()
    assert other.gone()
    os.close(other.reader)


def known(keep):
    """Whether the keeper can tell which process its holder is."""

    async def look():
        return keep._holder.is_identified()

    return look
