"""Fence agents as processes: what they are given, what others see of it, and how they end."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from support.fencing import ipmi_emulator as ipmi
from support.fencing import redfish_emulator as redfish
from support.fencing.fences import LONG, Agent, Dummy, IpmiAgent, RedfishAgent, why_not
from support.runtimes.pod_scripts import eventually

from lastcall.adapters.fencing.agent_process import run_agent
from lastcall.adapters.fencing.fence_agent import FenceAgents
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import InvalidInput, TimedOut, Unavailable
from lastcall.model.power import PowerState

pytestmark = pytest.mark.timeout(270)
METADATA = """<resource-agent name="fence_x"><parameters>
<parameter name="password" required="0"><content type="string"/></parameter>
<parameter name="ip" required="0"><content type="string"/></parameter>
</parameters><actions><action name="off"/></actions></resource-agent>"""
SECRET = "s3cret of the BMC"


def needs(kind):
    return pytest.mark.skipif(bool(why_not(kind)), reason=why_not(kind) or "it is there")


@pytest.fixture
def agent(tmp_path):
    """Makes a fence of a shell script: what it does after it has read what it is told."""

    async def make(script, *, patience=LONG, **parameters):
        program = tmp_path / "fence_x"
        program.write_text(
            f"#!/bin/sh\ntold=$(cat)\ncase $told in action=metadata*) echo '{METADATA}'; exit 0;; esac\n"
            f"cd {tmp_path}\n{script}\n"
        )
        program.chmod(0o755)
        agents = FenceAgents([str(tmp_path)])
        return await agents("bmc", "fence_x", parameters, {"password": SECRET}, patience=patience)

    yield make
    end_what_is_left(tmp_path)


def end_what_is_left(directory):
    """By a test that has failed."""
    for name in ("pid", "child"):
        with suppress(OSError, ValueError):
            pid = int((directory / name).read_text())
            if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def gone(pid):
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def visible(text):
    """The command lines and environments of all processes that hold a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            with suppress(OSError):
                if text.encode() in (process / name).read_bytes():
                    found.append(f"{process.name} {name}")
    return found


async def test_what_it_is_given(agent, tmp_path):
    fence = await agent('echo "$told" > stdin; echo "$#" > arguments; env > environment; exit 0', ip="10.0.0.1")
    await fence.switch_off(LONG)
    assert (tmp_path / "stdin").read_text() == f"action=off\nip=10.0.0.1\npassword={SECRET}\n"
    assert (tmp_path / "arguments").read_text() == "0\n"
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert names <= {"PATH", "LANG", "LC_ALL", "HOME", "PWD", "OLDPWD", "SHLVL", "_"}


@pytest.mark.parametrize("left", ["sleep 1000", "(trap '' TERM; sleep 1000)", "sleep 1000 & sleep 1000"])
async def test_a_hard_end_for_it_and_its_children(agent, tmp_path, left):
    fence = await agent(f"trap '' TERM HUP; echo $$ > pid; sleep 1000 & echo $! > child; {left}")
    for seconds in (1, 4, 16):  # on a machine that is busy it may not come as far as that at first
        with pytest.raises(TimedOut, match=f"fence_x was not over after {seconds} s and was killed"):
            await fence.switch_off(seconds)
        if (tmp_path / "child").exists():
            break
    for pid in [int((tmp_path / name).read_text()) for name in ("pid", "child")]:
        await eventually(lambda pid=pid: gone(pid))


async def test_its_end_is_put_off_while_it_runs(agent):
    """It takes a second more than it had at first; on a machine that is busy it may not have begun by then."""
    for seconds in (1, 4, 16):
        fence = await agent(f"sleep {seconds + 1}; exit 0")
        order = asyncio.create_task(fence.switch_off(seconds))
        while not order.done():
            fence.extend_order(SystemClock().boottime() + LONG)
            await asyncio.sleep(0.05)
        if order.exception() is None:
            return
    raise order.exception()


async def test_children_that_it_has_left_end_with_it(agent, tmp_path):
    fence = await agent("sleep 1000 & echo $! > child; exit 0")
    await fence.switch_off(LONG)
    await eventually(lambda: gone(int((tmp_path / "child").read_text())))


async def test_it_ends_also_when_the_controller_was_killed(tmp_path):
    script = (
        "import asyncio; from lastcall.adapters.fencing.agent_process import run_agent\n"
        f"asyncio.run(run_agent(['sh', '-c', 'echo $$ > {tmp_path}/pid; exec sleep 1000'], b'', within=12))"
    )
    controller = subprocess.Popen([sys.executable, "-c", script])
    try:
        await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    finally:
        controller.kill()
        controller.wait()
    pid = int((tmp_path / "pid").read_text())
    try:
        await eventually(lambda: gone(pid))
    finally:
        end_what_is_left(tmp_path)


@pytest.mark.parametrize(("left", "said", "code"), [(600, b"begun\n", 0), (-1, b"", -signal.SIGKILL)])
def test_what_begins_after_its_time_is_not_begun(left, said, code):
    """As by a keeper whose machine stood still while it was being started."""
    script = (
        "import os, sys; from lastcall.adapters.fencing import agent_keeper; begin = os.posix_spawnp\n"
        "os.posix_spawnp = lambda *which, **how: print('begun', flush=True) or begin(*which, **how)\n"
        "sys.exit(agent_keeper.main(sys.argv[1:]))"
    )
    heard, tell = os.pipe()
    try:
        keeper = (sys.executable, "-c", script, str(heard), str(SystemClock().boottime() + left), "true")
        ended = subprocess.run(keeper, pass_fds=(heard,), stdout=subprocess.PIPE, start_new_session=True, check=False)
    finally:
        os.close(heard)
        os.close(tell)
    assert (ended.stdout, ended.returncode) == (said, code)


async def test_more_than_a_pipe_holds(agent):
    fence = await agent("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 'ERROR: the last line' >&2; exit 1")
    with pytest.raises(Unavailable, match="the last line"):
        await fence.switch_off(LONG)


async def test_its_errors_are_told_without_what_is_secret(agent):
    fence = await agent('echo "ERROR: no entry with $told" >&2; exit 3')
    with pytest.raises(Unavailable) as failed:
        await fence.switch_off(LONG)
    answer = await fence.read_power()
    for message in (str(failed.value), answer.why):
        assert "was not let in" in message
        assert SECRET not in message


@pytest.mark.parametrize(("verb", "code"), [("switch_off", 7), ("switch_on", 6)])
async def test_one_that_gave_up_waiting_has_given_the_order(agent, verb, code):
    await getattr(await agent(f"exit {code}"), verb)(LONG)
    with pytest.raises(Unavailable):
        await getattr(await agent(f"exit {13 - code}"), verb)(LONG)


async def test_what_is_no_agent(tmp_path):
    agents = FenceAgents([str(tmp_path)])
    for program in ("fence_x", "../bin/sh", "/bin/sh"):
        with pytest.raises(InvalidInput, match="there is no such program in"):
            await agents("bmc", program, {}, {}, patience=LONG)
    (tmp_path / "fence_x").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "fence_x").chmod(0o755)
    with pytest.raises(Unavailable, match="did not describe itself"):
        await agents("bmc", "fence_x", {}, {}, patience=LONG)
    (tmp_path / "fence_y").write_text("#!/nowhere\n")
    (tmp_path / "fence_y").chmod(0o755)
    with pytest.raises(Unavailable):
        await agents("bmc", "fence_y", {}, {}, patience=LONG)


async def test_an_agent_is_asked_once_how_it_wants_to_be_used(agent, tmp_path):
    await agent("exit 0")
    agents = FenceAgents([str(tmp_path)])
    program = tmp_path / "fence_x"
    program.write_text(program.read_text().replace("case $told", f"echo x >> {tmp_path}/asked; case $told"))
    for _ in range(2):
        await agents("bmc", "fence_x", {}, {}, patience=LONG)
    assert (tmp_path / "asked").read_text() == "x\n"
    program.write_text(program.read_text().replace('name="ip"', 'name="address"'))
    os.utime(program, (1, 1))
    with pytest.raises(InvalidInput, match="knows no parameter ip"):
        await agents("bmc", "fence_x", {"ip": "h"}, {}, patience=LONG)


async def test_without_a_descriptor_there_is_none(monkeypatch):
    def none_left(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", none_left)
    with pytest.raises(Unavailable, match="Too many open files"):
        await run_agent(["true"], b"", within=LONG)


async def test_without_a_keeper_there_is_none(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(Unavailable, match="cannot be started"):
        await run_agent(["true"], b"", within=LONG)


async def test_what_is_no_program_is_told_as_a_shell_tells_it():
    ended = await run_agent(["/nowhere/fence_x"], b"", within=LONG)
    assert (ended.code, ended.said) == (127, "/nowhere/fence_x: No such file or directory\n")


# -- the real ones ------------------------------------------------------------------------------------------------------


@needs(Dummy)
async def test_parameters_with_blanks_and_quotes_reach_it_as_they_are(tmp_path):
    for name in (" blank", '"quoted"', "a=b # c", "it's"):
        file = tmp_path / name
        file.write_text("on")
        fence = await FenceAgents()("bmc", "fence_dummy", {"type": "file", "status_file": str(file)}, {}, patience=LONG)
        await fence.switch_off(LONG)
        assert file.read_text() == "off", name


@needs(IpmiAgent)
async def test_the_password_is_seen_by_nobody_while_ipmitool_runs():
    with ExitStack() as stack:
        bench = IpmiAgent(stack)
        fence = await bench.fence()
        with bench.dead():
            asking = asyncio.create_task(fence.read_power())
            await eventually(lambda: [line for line in visible("/proc/") if _is_ipmitool(line)], 20)
            assert visible(ipmi.PASSWORD) == []
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
        assert (await fence.read_power()).power is PowerState.ON


def _is_ipmitool(line):
    pid, name = line.split()
    with suppress(OSError):
        return name == "cmdline" and Path(f"/proc/{pid}/comm").read_text() == "ipmitool\n"
    return False


@needs(IpmiAgent)
async def test_an_ipmi_device_without_a_password_is_asked_without_one():
    with ExitStack() as stack:
        parameters = IpmiAgent(stack).parameters()
        fence = await FenceAgents()("bmc", "fence_ipmilan", parameters, {}, patience=LONG)
        assert (await fence.read_power()).power is PowerState.UNKNOWN


@needs(RedfishAgent)
async def test_a_system_that_is_not_there_and_one_that_is_not_named():
    with ExitStack() as stack:
        bench = RedfishAgent(stack)
        wrong = {**bench.parameters(), "systems_uri": "/redfish/v1/Systems/nobody"}
        secrets = {"password": redfish.PASSWORD}
        fence = await FenceAgents()("bmc", "fence_redfish", wrong, secrets, patience=LONG)
        assert (await fence.read_power()).power is PowerState.UNKNOWN
        with pytest.raises(Unavailable):
            await fence.switch_off(LONG)
        assert {bench.emulator.power(name) for name in redfish.MACHINES} == {"On"}
        del wrong["systems_uri"]
        with pytest.raises(InvalidInput, match="systems_uri: must be given"):
            await FenceAgents()("bmc", "fence_redfish", wrong, secrets, patience=LONG)


@needs(RedfishAgent)
async def test_only_the_system_that_is_named_is_switched():
    with ExitStack() as stack:
        bench = RedfishAgent(stack)
        await (await bench.fence()).switch_off(LONG)
        assert [bench.emulator.power(name) for name in redfish.MACHINES] == ["Off", "On"]


@pytest.mark.parametrize("kind", [Dummy, RedfishAgent, IpmiAgent], ids=lambda kind: kind.program)
async def test_what_real_agents_refuse(kind):
    assert issubclass(kind, Agent)
    if reason := why_not(kind):
        pytest.skip(reason)
    with pytest.raises(InvalidInput, match=f"{kind.program}: nonsense: 1: {kind.program} knows no parameter"):
        await FenceAgents()("bmc", kind.program, {"nonsense": "1"}, {}, patience=LONG)
