"""The real upsd of NUT with a driver that pretends, and commands that misbehave."""

import asyncio
import subprocess

import pytest
from support.deadlines.power_supply import CLIENT, DummySupply, why_not

from lastcall.adapters.deadlines import upsc
from lastcall.adapters.deadlines.upsc import UpscCommand
from lastcall.errors import Unavailable
from lastcall.graceful.deadlines.power_supply import supply_finding
from lastcall.model.deadline_settings import NutSettings


@pytest.fixture
def supply(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    with DummySupply(tmp_path / "nut") as supply:
        yield supply


async def read(name):
    return await UpscCommand(CLIENT, name).read_variables()


async def test_what_the_supply_reports_in_a_power_failure(supply):
    settings = NutSettings(ups=supply.name)

    async def found():
        return supply_finding(await read(supply.name), settings, now=0.0)

    assert (await found()).notice is None
    await asyncio.to_thread(supply.say, "OB DISCHRG", battery_runtime="600")
    await asyncio.to_thread(supply.wait_for, "OB DISCHRG")
    assert (await found()).warning == "on battery, battery for 10m0s"
    await asyncio.to_thread(supply.say, "OB DISCHRG LB", battery_runtime="90")
    await asyncio.to_thread(supply.wait_for, "OB DISCHRG LB")
    assert (await found()).notice.deadline == 90
    await asyncio.to_thread(supply.say, "OL CHRG", battery_runtime="90")
    await asyncio.to_thread(supply.wait_for, "OL CHRG")
    assert (await found()).notice is None


async def test_a_supply_or_server_that_is_not_there(supply):
    with pytest.raises(Unavailable, match="failed with 1: .*Unknown UPS"):
        await read(supply.name.replace("dummy@", "other@"))
    await asyncio.to_thread(supply.stop_server)
    with pytest.raises(Unavailable, match="Connection refused"):
        await read(supply.name)
    await asyncio.to_thread(supply.start_server)
    await asyncio.to_thread(supply.wait_for, "OL")
    assert (await read(supply.name))["ups.status"] == "OL"


def script(tmp_path, body):
    path = tmp_path / "upsc"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_command_that_hangs_is_ended_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(upsc, "SECONDS", 0.5)
    pid = tmp_path / "pid"
    with pytest.raises(Unavailable, match="said nothing for 0.5 s"):
        await UpscCommand(script(tmp_path, f"sleep 600 & echo $! >{pid}; wait"), "ups").read_variables()
    ended = await asyncio.to_thread(
        subprocess.run, ["ps", "-o", "stat=", "-p", pid.read_text().strip()], capture_output=True
    )
    assert ended.stdout.strip()[:1] in (b"", b"Z")


async def test_a_command_that_says_too_much(tmp_path):
    with pytest.raises(Unavailable, match="more than 65536 bytes"):
        await UpscCommand(script(tmp_path, "yes"), "ups").read_variables()


async def test_a_command_that_is_missing(tmp_path):
    with pytest.raises(Unavailable, match="cannot be started: No such file"):
        await UpscCommand(str(tmp_path / "none"), "ups").read_variables()


async def test_lines_that_are_no_variables_are_passed_over(tmp_path):
    body = "echo nonsense; echo 'ups.status: OL'; echo 'a: b: c'; printf '\\377: x\\n'"
    variables = await UpscCommand(script(tmp_path, body), "ups").read_variables()
    assert variables["ups.status"] == "OL"
    assert variables["a"] == "b: c"
