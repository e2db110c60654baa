"""The lock outlives its agent, comes back, is closed when told, and no copy of it goes astray; on real descriptors."""

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.host.locks import CLOCK, Lock, a_keeper, a_lock, ended_with_test, gone, hang, killed_agent, patience  # noqa: F401  (fixtures)
from support.host.logind import eventually

from lastcall.adapters.logind.descriptor_store import DescriptorStoreKeeper
from lastcall.adapters.logind.holder_process import HolderProcess
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper, choose_lock_keeper


def holder_pid(lock):
    [pid] = [pid for pid in lock.holders() if pid != os.getpid()]
    return pid


async def asked(keep):
    """The deadline that the holder answers: it has started then."""
    answer, descriptors = await keep._holder.ask("give")
    for descriptor in descriptors:
        os.close(descriptor)
    return answer


async def test_one_copy_is_ours_and_one_the_holders(keep, lock):
    await keep.keep_lock(lock.writer)
    assert keep.is_held
    assert sorted([os.getpid(), holder_pid(lock)]) == lock.holders()
    await keep.release()
    assert lock.gone(), "at once"
    assert not keep.is_held


async def test_the_holder_is_gone_after_the_release(keep, lock):
    await keep.keep_lock(lock.writer)
    pid = holder_pid(lock)
    await keep.release()
    assert not Path(f"/proc/{pid}").exists()
    await keep.release()


async def test_nothing_to_recover_or_to_release(keep):
    assert not await keep.recover()
    assert not keep.is_held
    await keep.set_deadline(0.0)
    await keep.release()


async def test_the_lock_outlives_its_agent_and_comes_back(keep, lock, tmp_path):
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer)
    assert not await gone(lock, 0.3)
    assert await keep.recover()
    assert keep.is_held
    assert await keep.recover(), "a second time does no harm"
    assert sorted([os.getpid(), holder_pid(lock)]) == lock.holders()
    await keep.release()
    assert lock.gone()


async def test_what_comes_back_is_not_inherited(keep, lock, tmp_path):
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer)
    await keep.recover()
    assert not os.get_inheritable(keep._own)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_to_all_does_not_end_the_holder(keep, lock, number):
    await keep.keep_lock(lock.writer)
    pid = holder_pid(lock)
    await asked(keep)
    os.kill(pid, number)
    await asyncio.sleep(0.1)
    assert holder_pid(lock) == pid
    assert os.getsid(pid) == pid, "a session of its own"


async def test_the_deadline_closes_the_lock_of_a_dead_agent(lock, tmp_path):
    deadline = CLOCK.boottime() + 1.0
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer, repr(deadline))
    assert not lock.gone() or CLOCK.boottime() >= deadline
    assert await gone(lock)
    assert CLOCK.boottime() >= deadline
    assert not await HolderProcessKeeper(tmp_path, CLOCK).recover(), "the stale socket is no error"


async def test_a_holder_that_ends_while_it_is_found_holds_nothing(tmp_path, caplog):
    """It has closed the lock and its name is gone with its memory, but its socket takes one connection more."""

    def end_it():
        client, _ = listener.accept()
        time.sleep(0.1)
        listener.close()
        client.close()

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "lock-holder.sock"))
        listener.listen(64)
        end = asyncio.create_task(asyncio.to_thread(end_it))
        keep = HolderProcessKeeper(tmp_path, CLOCK)
        assert not await keep.recover()
        await end
    assert not keep.is_held
    assert not caplog.text


async def test_a_deadline_that_is_past_closes_at_once(keep, lock):
    await keep.keep_lock(lock.writer)
    pid = holder_pid(lock)
    await keep.set_deadline(CLOCK.boottime() - 1)
    assert lock.holders() == [os.getpid()]
    assert keep.is_held, "our own copy is closed by release"

    async def there():
        return Path(f"/proc/{pid}").exists()

    assert not await eventually(there, False)
    assert lock.holders() == [os.getpid()], "no other holder is started"


async def test_a_lock_of_which_nobody_knows_any_more_is_let_go(lock, tmp_path):
    begin = CLOCK.boottime()
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer, patience=1.0)
    assert await gone(lock)
    assert CLOCK.boottime() - begin >= 1.0


async def test_an_agent_that_comes_back_in_time_is_the_owner(tmp_path, lock):
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer, patience=15.0)
    keep = HolderProcessKeeper(tmp_path, CLOCK)
    assert await keep.recover()
    assert not await gone(lock, 15.5)
    assert len(lock.holders()) == 2
    await keep.release()


async def test_the_deadline_goes_before_patience(lock, tmp_path):
    deadline = CLOCK.boottime() + 2.0
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer, repr(deadline), patience=0.1)
    assert await gone(lock)
    assert CLOCK.boottime() >= deadline


async def test_the_deadline_is_recovered_too(keep, lock, tmp_path):
    deadline = CLOCK.boottime() + 1000
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer, repr(deadline))
    await keep.recover()
    assert keep._deadline == deadline


async def test_a_new_lock_takes_the_place_of_the_old_one(keep, lock):
    other = Lock()
    await keep.keep_lock(lock.writer)
    pid = holder_pid(lock)
    await asked(keep)
    await keep.set_deadline(CLOCK.boottime() + 15)
    await keep.keep_lock(other.writer)
    assert lock.gone()
    assert holder_pid(other) == pid, "the same holder"
    assert not await gone(other, 15.3), "the deadline was the old one's"
    await keep.release()
    assert other.gone()
    os.close(other.reader)


async def test_a_holder_that_dies_is_replaced_with_its_deadline(keep, lock):
    await keep.keep_lock(lock.writer)
    deadline = CLOCK.boottime() + 1000
    await keep.set_deadline(deadline)
    first = holder_pid(lock)
    os.kill(first, signal.SIGKILL)

    async def two():
        holders = lock.holders()
        return len(holders) == 2 and first not in holders

    assert await eventually(two, True)
    assert await asked(keep) == repr(deadline).encode()
    assert not lock.gone()


async def test_a_new_lock_has_no_deadline_with_the_holder_of_before_and_with_another(keep, lock):
    """That of the old lock was a shutdown's that was called off."""
    other = Lock()
    await keep.keep_lock(lock.writer)
    await keep.set_deadline(CLOCK.boottime() + 1000)
    await keep.keep_lock(other.writer)
    assert await asked(keep) == b"inf"
    first = holder_pid(other)
    os.kill(first, signal.SIGKILL)

    async def two():
        holders = other.holders()
        return len(holders) == 2 and first not in holders

    assert await eventually(two, True)
    assert await asked(keep) == b"inf"
    await keep.release()
    os.close(other.reader)


async def test_a_holder_that_hangs_is_replaced_by_one_that_is_not_lost(keep, lock, hang):  # noqa: F811
    """Its end, which is told later, is not taken for that of the new one."""
    await keep.keep_lock(lock.writer)
    before = holder_pid(lock)
    hang(before)
    deadline = CLOCK.boottime() + 1000
    await keep.set_deadline(deadline)
    after = holder_pid(lock)
    assert after != before
    await asyncio.sleep(2)  # a lost one would have been replaced by then
    assert sorted([os.getpid(), after]) == lock.holders()
    assert await asked(keep) == repr(deadline).encode()
    await keep.release()
    assert lock.gone(), "no copy is forgotten"


async def test_a_holder_that_hangs_is_killed_at_the_release(keep, lock, hang):  # noqa: F811
    await keep.keep_lock(lock.writer)
    hang(holder_pid(lock))
    await keep.release()
    assert lock.gone()


async def test_a_holder_that_hangs_is_replaced_by_the_next_lock(keep, lock, hang):  # noqa: F811
    other = Lock()
    await keep.keep_lock(lock.writer)
    pid = holder_pid(lock)
    hang(pid)
    await keep.keep_lock(other.writer)
    assert await gone(lock)
    assert holder_pid(other) != pid
    await keep.release()
    assert other.gone()
    os.close(other.reader)


async def test_a_holder_of_before_that_hangs_counts_as_held_and_is_killed(keep, lock, tmp_path, hang):  # noqa: F811
    await asyncio.to_thread(killed_agent, tmp_path, lock.writer)
    hang(holder_pid(lock))
    assert await keep.recover()
    assert not lock.gone()
    await keep.release()
    assert lock.gone()


async def test_a_long_directory(tmp_path, lock):
    directory = tmp_path / ("x" * 120) / ("y" * 120)
    await asyncio.to_thread(directory.mkdir, parents=True)
    await asyncio.to_thread(killed_agent, directory, lock.writer)
    keep = HolderProcessKeeper(directory, CLOCK)
    assert await keep.recover()
    [entry] = directory.iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600
    await keep.release()
    assert lock.gone()


async def test_without_a_holder_the_lock_is_ours_alone(tmp_path, lock, caplog):
    keep = HolderProcessKeeper(tmp_path / "missing", CLOCK)
    await keep.keep_lock(lock.writer)
    assert lock.holders() == [os.getpid()]
    assert "its holder cannot be started" in caplog.text
    (tmp_path / "missing").mkdir()

    async def two():
        return len(lock.holders()) == 2

    assert await eventually(two, True), "it is tried again"
    await keep.release()
    assert lock.gone()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_other_users_are_not_heard(keep, lock, tmp_path):
    await keep.keep_lock(lock.writer)
    await asked(keep)
    for directory in (tmp_path, *tmp_path.parents[:-2]):
        directory.chmod(0o755)
    (tmp_path / "lock-holder.sock").chmod(0o777)
    code = "import os,socket,sys; os.setresuid(65534,65534,65534); "
    code += "s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.connect(sys.argv[1])\n"
    code += "try: s.send(b'release'); print(s.recv(9))\nexcept OSError: print(b'')"
    line = [sys.executable, "-c", code, str(tmp_path / "lock-holder.sock")]
    run = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True)
    assert run.stdout == "b''\n", run.stderr
    assert len(lock.holders()) == 2


@pytest.mark.parametrize("request_", [b"nonsense", b"close_at soon", b"keep", b"", b"\xff" * 200])
async def test_nonsense_changes_nothing(keep, lock, tmp_path, request_):
    await keep.keep_lock(lock.writer)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(tmp_path / "lock-holder.sock"))
        client.send(request_)
        client.settimeout(60)
        assert await asyncio.to_thread(client.recv, 100) == b""
    assert await asked(keep) == b"inf"


async def test_a_client_that_says_nothing_holds_up_nobody_for_long(keep, lock, tmp_path):
    await keep.keep_lock(lock.writer)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(tmp_path / "lock-holder.sock"))
        await keep.release()
    assert lock.gone()


@pytest.mark.parametrize("close_fds", [True, False])
async def test_no_child_inherits_a_copy(keep, lock, close_fds):
    await keep.keep_lock(lock.writer)
    children = [
        subprocess.Popen(["sleep", "60"], close_fds=close_fds),
        await asyncio.create_subprocess_exec("sleep", "60", close_fds=close_fds),
    ]
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
    try:
        assert sorted([os.getpid(), holder_pid(lock)]) == lock.holders()
        copy = (await keep._holder.ask("give"))[1][0]
        with subprocess.Popen(["sleep", "60"], close_fds=close_fds) as child:
            assert child.pid not in lock.holders()
            child.kill()
        os.close(copy)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for child in children:
            child.kill()
        children[0].wait()
        await children[1].wait()


async def test_the_holder_has_nothing_else_of_ours_and_is_small(keep, lock):
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    await keep.keep_lock(lock.writer)
    await asked(keep)
    pid = holder_pid(lock)
    found = {link.name: str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    os.close(stray)
    assert sorted(found, key=int) == ["0", "1", "2", "3", "4", "5"], "the last one is our pidfd"
    assert "pidfd" in found["5"]
    assert [found[n] for n in "012"] == ["/dev/null"] * 3
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    resident = int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])
    assert resident < 20_000, "KiB; some 10,000 on x86-64"


@pytest.mark.parametrize(
    ("environ", "kind"),
    [
        ({}, HolderProcessKeeper),
        ({"NOTIFY_SOCKET": "/run/systemd/notify"}, HolderProcessKeeper),
        ({"NOTIFY_SOCKET": "/run/systemd/notify", "FDSTORE": "0"}, HolderProcessKeeper),
        ({"FDSTORE": "2"}, HolderProcessKeeper),
        ({"NOTIFY_SOCKET": "/run/systemd/notify", "FDSTORE": "2"}, DescriptorStoreKeeper),
    ],
)
def test_which_keeper(tmp_path, environ, kind):
    assert type(choose_lock_keeper(tmp_path, CLOCK, environ=environ)) is kind


async def test_a_lock_without_a_deadline_is_not_closed(keep, lock):
    await keep.keep_lock(lock.writer)
    await keep.set_deadline(math.inf)
    assert not await gone(lock, 1.3)
    assert HolderProcess.find(keep._directory) is not None
