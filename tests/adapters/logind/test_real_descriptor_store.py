"""The lock in the descriptor store of a real systemd: a service manager (``systemd --user``) in a cage of its own."""

import os
import sys
import time

import pytest
from support.host import service_manager

UNIT = """
[Service]
Type=notify
FileDescriptorStoreMax=2
Environment=FDSTORE=2
Restart=always
RestartSec=100ms
ExecStart={python} {program} {state}
"""

PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.lock_keeper import choose_lock_keeper
from lastcall.adapters.systemd import notification

async def main(state):
    lock_keeper = choose_lock_keeper(state, SystemClock())
    recovered = await lock_keeper.recover()
    with (state / "log").open("a") as log:
        print(type(lock_keeper).__name__, recovered, os.environ.get("LISTEN_FDNAMES"), file=log)
    notification.notify_ready()
    lives = len((state / "log").read_text().splitlines())
    reader = os.open(state / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    if lives < 3:
        await lock_keeper.keep_lock(os.open(state / "fifo", os.O_WRONLY))
        os.kill(os.getpid(), signal.SIGKILL)
    if lives == 3:
        held = not ended(reader)
        await lock_keeper.release()
        with (state / "log").open("a") as log:
            print("held", held, "released", ended(reader), file=log)
    await asyncio.sleep(60)

def ended(reader):
    try:
        return os.read(reader, 1) == b""
    except BlockingIOError:
        return False

asyncio.run(main(Path(sys.argv[1])))
"""


def test_the_lock_survives_kills_and_is_let_go(tmp_path):
    if reason := service_manager.why_not():
        pytest.skip(reason)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    os.mkfifo(tmp_path / "fifo")
    unit = UNIT.format(python=sys.executable, program=program, state=tmp_path)
    with service_manager.service_manager(tmp_path, {"keeper.service": unit}, start="keeper.service"):
        said = log_of_the_service(tmp_path)
    assert said == [
        "DescriptorStoreKeeper False None",
        "DescriptorStoreKeeper True shutdown-lock",
        "DescriptorStoreKeeper True shutdown-lock-2",
        "held True released True",
    ], (tmp_path / "manager.log").read_text()


def log_of_the_service(state, lines=4):
    deadline = time.monotonic() + 90
    said = []
    while len(said) < lines and time.monotonic() < deadline:
        time.sleep(0.05)
        said = (state / "log").read_text().splitlines() if (state / "log").exists() else []
    return said
