"""The command by which sanlock is asked: it may be missing, fail, hang, or print anything."""

import asyncio
import os

import pytest

from lastcall.adapters.host import sanlock
from lastcall.adapters.host.sanlock import Sanlock
from lastcall.errors import Unavailable


@pytest.fixture
def command(tmp_path, monkeypatch):
    """What it says is tested, not how soon."""
    monkeypatch.setattr(sanlock, "SECONDS", 60)

    def made(script):
        path = tmp_path / "sanlock"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return Sanlock(str(path))

    return made


async def test_there_is_no_such_command(tmp_path):
    with pytest.raises(Unavailable, match="sanlock cannot be started: No such file or directory"):
        await Sanlock(str(tmp_path / "sanlock")).read_lockspace("demo")


async def test_it_fails(command):
    with pytest.raises(Unavailable, match="sanlock client status failed with 1: no daemon"):
        await command("echo no daemon >&2; exit 1").read_lockspace("demo")


async def test_what_it_prints_is_no_text(command):
    with pytest.raises(Unavailable, match="its status names no daemon"):
        await command(r"printf '\377\376\0daemon\n'").read_lockspace("demo")


@pytest.mark.parametrize("left", ["by its time", "by its caller"])
async def test_one_that_hangs_is_ended(command, tmp_path, monkeypatch, left):
    if left == "by its time":
        monkeypatch.setattr(sanlock, "SECONDS", 0.3)
    asked = asyncio.create_task(command(f"echo $$ > {tmp_path}/pid; exec sleep 1000").read_lockspace("demo"))
    async with asyncio.timeout(25):
        if left == "by its time":
            with pytest.raises(Unavailable, match=r"sanlock client status said nothing for 0.3 s"):
                await asked
            return
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.02)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_its_arguments_are_its_own(command, tmp_path):
    with pytest.raises(Unavailable):
        await command(f'echo "$#: $*" >> {tmp_path}/asked').read_lockspace("demo; reboot")
    assert (tmp_path / "asked").read_text() == "3: client status -D\n"
