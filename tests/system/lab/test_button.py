"""The button of a machine of the lab: who presses it sees that it is pressed, and the log whose button it was."""

import asyncio
import logging
from pathlib import Path

import pytest
from support.lab.real_machines import Lab

from lastcall.errors import InvalidInput
from lastcall_lab.up.log_prefix import prefix_machine_names

pytestmark = pytest.mark.timeout(270)


@pytest.fixture
async def lab(tmp_path):
    async with Lab(tmp_path, "processes").up() as lab:
        yield lab


@pytest.fixture
def lines(monkeypatch):
    """What is logged, as ``lab up`` logs it."""
    found = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: found.append(record.getMessage())
    prefix_machine_names(handler)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    return found


async def test_it_is_pressed_when_the_answer_comes_and_goes_off_afterwards(lab, lines):
    await lab.machines.switch("lab-1", "button")
    assert [one["power"] for one in lab.machines.status()] == ["button", "on"]
    await lab.until_off()
    assert "lab-1: the machine is shutting down (poweroff): ending the pods" in lines


async def test_a_machine_that_is_off_has_no_button_to_press(lab):
    await lab.machines.switch("lab-1", "off")
    with pytest.raises(InvalidInput, match="lab-1 is off: button makes no sense"):
        await lab.machines.switch("lab-1", "button")


async def test_a_loss_of_power_completes_although_the_lab_ends(tmp_path):
    names = ("one", "two", "three")
    async with Lab(tmp_path, "processes").up() as lab:
        for name in names:
            await lab.add(name)
        await lab.until_ready(*names)
        assert processes_below(tmp_path)
        cut = asyncio.ensure_future(lab.machines.switch("lab-1", "off"))
        while lab.power != "off":
            await asyncio.sleep(0)
    await cut
    assert processes_below(tmp_path) == []


def processes_below(directory):
    """The command lines of processes that name it: the shims of its containers."""
    texts = [read_command_line(one) for one in Path("/proc").iterdir() if one.name.isdecimal()]
    return [text for text in texts if f"{directory}/" in text]


def read_command_line(process):
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
