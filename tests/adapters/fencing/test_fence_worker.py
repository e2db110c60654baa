"""A question to a device is over when its time is, when nobody waits any more, and when who has asked is gone."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from support.fencing.worker_probe import MODULE, TESTS, Probe, errand

from lastcall.adapters.fencing.fence_worker import FenceAction, FenceQuestion
from lastcall.adapters.fencing.redaction import HIDDEN
from lastcall.adapters.fencing.worker_process import FenceRequest
from lastcall.errors import RefusedForSafety, TimedOut, Unavailable

pytestmark = pytest.mark.timeout(180)
SECRET = "open-sesame"
LONG = 60.0


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """The probe is found where the tests are."""
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}:{before}" if before else TESTS)


class Device:
    """Takes connections and says nothing; notes how they end."""

    def __init__(self):
        self.pids, self.ends = asyncio.Queue(), asyncio.Queue()

    async def serve(self, reader, writer):
        try:
            await self.pids.put(int(await reader.readline()))
            await self.ends.put("closed" if await reader.read() == b"" else "more")
        except ConnectionResetError:
            await self.ends.put("reset")
        finally:
            writer.transport.abort()


@pytest.fixture
async def device():
    device = Device()
    server = await asyncio.start_server(device.serve, "127.0.0.1", 0)
    device.port = server.sockets[0].getsockname()[1]
    yield device
    server.close()
    await server.wait_closed()


async def ended(device, pid):
    """Its connection was dropped with all that had not been sent, and no process is left."""
    async with asyncio.timeout(LONG):
        assert await device.ends.get() == "reset"
        while Path(f"/proc/{pid}").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
            await asyncio.sleep(0.05)


async def test_it_is_over_when_its_time_is(device):
    with pytest.raises(TimedOut, match="no answer within 15 s|ended by signal 14"):
        await errand("hang", port=device.port).ask(FenceAction.OFF, 15)
    await ended(device, device.pids.get_nowait())


async def test_it_is_over_when_nobody_waits_any_more(device):
    asking = asyncio.create_task(errand("hang", port=device.port).ask(FenceAction.OFF, 600))
    pid = await device.pids.get()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await ended(device, pid)


async def asker(device, seconds):
    """Another process that asks."""
    command = (sys.executable, "-m", MODULE, str(device.port), str(seconds))
    return await asyncio.create_subprocess_exec(*command)


async def test_it_is_over_when_who_has_asked_is_killed(device):
    process = await asker(device, 600)
    pid = await device.pids.get()
    process.kill()
    await process.wait()
    await ended(device, pid)


async def test_it_is_over_in_time_when_who_has_asked_hangs(device):
    process = await asker(device, 12)
    pid = await device.pids.get()
    process.send_signal(signal.SIGSTOP)
    try:
        await ended(device, pid)
    finally:
        process.kill()
        await process.wait()


async def test_no_secret_where_others_can_see_it():
    reply = await errand("look", secret=SECRET).ask(FenceAction.STATUS, LONG)
    assert MODULE in reply.why
    assert SECRET not in reply.why


async def test_its_environment_is_what_it_was_given(monkeypatch):
    monkeypatch.setenv("OF_THE_CONTROLLER", "1")
    told = (await errand("look").ask(FenceAction.STATUS, LONG)).why
    assert "PATH=/usr/bin:/bin\0" in told
    assert "OF_THE_CONTROLLER" not in told


@pytest.mark.parametrize(
    ("does", "error", "why"),
    [
        ("tell", RefusedForSafety, f"not with {HIDDEN}"),
        ("fail", Unavailable, f"KeyError: '{HIDDEN}'"),
        ("crash", Unavailable, f"{MODULE} failed with 3: it was {HIDDEN}"),
        ("babble", Unavailable, f"{MODULE} failed with 0: "),
    ],
)
async def test_what_goes_wrong_is_told_without_secrets(does, error, why):
    with pytest.raises(error) as raised:
        await errand(does, secret=SECRET).ask(FenceAction.STATUS, LONG)
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("does", "secret", "why"),
    [
        ("spell", 'open "sesame"', f"no connection to https://fence:{HIDDEN}@bmc"),
        ("find", "", f"refused with {HIDDEN}"),
    ],
)
async def test_a_secret_is_hidden_however_it_is_spelled_and_whoever_has_found_it(does, secret, why):
    with pytest.raises(Unavailable) as raised:
        await errand(does, secret=secret).ask(FenceAction.STATUS, LONG)
    assert str(raised.value) == why


@pytest.mark.parametrize("within", [0, -1])
async def test_nothing_is_begun_without_time(within):
    with pytest.raises(RefusedForSafety, match="no time is left"):
        await errand("hang", port=1).ask(FenceAction.OFF, within)


class Stopped:
    """A clock that stands where it is put."""

    now = 100.0

    def boottime(self):
        return self.now


def test_too_late_is_noticed_right_before_sending():
    clock = Stopped()
    turn = FenceRequest(FenceQuestion(action=FenceAction.OFF, deadline=105.0, parent=1, settings=Probe(does="")), clock)
    assert turn.seconds_left == 5
    assert turn.seconds_per_request == 4
    turn.ensure_time_left()
    clock.now = 105.0
    with pytest.raises(TimedOut):
        turn.ensure_time_left()


async def test_a_process_that_cannot_be_started_is_no_fault_of_ours(monkeypatch):
    """The controller goes on, and asks again, when the machine has no process left for it."""
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(Unavailable, match="cannot be started"):
        await errand("look").ask(FenceAction.STATUS, LONG)
