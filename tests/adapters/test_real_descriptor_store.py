"""The lock in the descriptor store of a real systemd: a service manager (``systemd --user``) in a cage of its own."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lastcall.lab.private_logind import cage

MANAGER = "/lib/systemd/systemd"

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
from lastcall.adapters import systemd_notify
from lastcall.adapters.clock import SystemClock
from lastcall.adapters.lock_keeper import keeper

async def main(state):
    lock_keeper = keeper(state, SystemClock())
    recovered = await lock_keeper.recover()
    with (state / "log").open("a") as log:
        print(type(lock_keeper).__name__, recovered, os.environ.get("LISTEN_FDNAMES"), file=log)
    systemd_notify.ready()
    lives = len((state / "log").read_text().splitlines())
    reader = os.open(state / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    if lives < 3:
        await lock_keeper.keep(os.open(state / "fifo", os.O_WRONLY))
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
    if os.geteuid() != 0:
        pytest.skip("a service manager in a cage needs root")
    if reason := cage.why_not():
        pytest.skip(reason)
    for directory in ("etc/systemd", "run/systemd/system", "run/user/systemd/user"):
        (tmp_path / directory).mkdir(parents=True)
    for vendor in ("usr/lib", "usr/local/lib"):
        (tmp_path / vendor / "systemd/logind.conf.d").mkdir(parents=True)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    unit = UNIT.format(python=sys.executable, program=program, state=tmp_path)
    (tmp_path / "run/user/systemd/user/keeper.service").write_text(unit)
    os.mkfifo(tmp_path / "fifo")
    said = log_of_the_service(tmp_path)
    assert said == [
        "StoreKeeper False None",
        "StoreKeeper True shutdown-lock",
        "StoreKeeper True shutdown-lock-2",
        "held True released True",
    ]


ENTER = """
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
  if [ -f $hierarchy/cgroup.procs ]; then mkdir $hierarchy/$0 && echo 0 > $hierarchy/$0/cgroup.procs; fi
done 2>/dev/null
"$@"
true
"""
"""Into a group of its own, in which the manager makes its groups. The shell is process 1 of the cage: a systemd that is
becomes a system manager."""


def log_of_the_service(state, lines=4):
    manager = ["env", "XDG_RUNTIME_DIR=/run/user", MANAGER, "--user", "--log-target=console", "--unit=keeper.service"]
    group = f"lastcall-test-{os.getpid()}"
    line = cage.command(state, "sh", "-c", ENTER, group, *manager)
    with (state / "manager.log").open("w") as log, subprocess.Popen(line, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + 20
            said = []
            while len(said) < lines and time.monotonic() < deadline:
                time.sleep(0.05)
                said = (state / "log").read_text().splitlines() if (state / "log").exists() else []
        finally:
            process.kill()  # and with it the cage
    remove_groups(group)
    assert said, (state / "manager.log").read_text()
    return said


def remove_groups(name, seconds=5.0):
    """When their last processes have ended."""
    roots = [*Path("/sys/fs/cgroup").glob(name), *Path("/sys/fs/cgroup").glob(f"*/{name}")]
    deadline = time.monotonic() + seconds
    while any(root.exists() for root in roots) and time.monotonic() < deadline:
        for group in sorted((g for root in roots for g in root.glob("**/")), reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        time.sleep(0.02)
    assert not any(root.exists() for root in roots)
