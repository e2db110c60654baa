"""The whole program when a script, a cloud or a power supply says that the machine goes down; the real logind beside it."""

import asyncio
import json
import sys

import pytest
from support.agents.system_node import PATIENT, Node
from support.deadlines.power_supply import DummySupply, why_not
from support.host.logind import private_logind  # noqa: F401  (fixtures)

from lastcall.model.shutdown import ShutdownOutcome

pytestmark = pytest.mark.timeout(180)

SOCKET = f"{PATIENT}deadlines:\n  socket: {{}}\n"


@pytest.fixture
async def make_node(private_logind, tmp_path):  # noqa: F811
    made = []

    def make(config):
        node = Node(tmp_path / "node", private_logind, config=config)
        made.append(node)
        node.add("web", takes=1)
        node.add("dns", priority=2_000_000_000, takes=1)
        return node

    yield make
    for node in made:
        await node.clean_up()


async def shutdown_notice(node, *arguments, state=None):
    command = [sys.executable, "-m", "lastcall", "shutdown-notice", f"--state-dir={state or node.state}", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


def in_order(node):
    times = [node.when("web", "TERM"), node.when("web", "exit"), node.when("dns", "TERM"), node.when("dns", "exit")]
    return times == sorted(times)


async def test_a_script_announces_the_shutdown_and_logind_joins_it(make_node):
    node = make_node(SOCKET)
    await node.start()
    code, out, err = await shutdown_notice(node, "--in", "110s", "--reason", "maintenance of the host")
    assert (code, err) == (0, "")
    assert out.startswith("the shutdown of the pods begins now and takes ")
    assert "Socket: maintenance of the host, in " in out
    record = await node.over()
    assert in_order(node)
    assert record.announced_by == ("Socket",)
    assert await node.logind.starts() == [], "the machine is not switched off by us"
    assert node.ready()["status"] == "False"
    await node.logind.power_off()
    await node.logind.wait_for_start()
    assert (node.count("web", "TERM"), node.count("dns", "TERM")) == (1, 1)

    async def joined():
        [record] = node.records()
        return record.announced_by == ("Socket", "Logind") and record.how == "poweroff"

    await node.until(joined, "logind's announcement to be recorded")


async def test_an_agent_that_is_killed_in_the_middle_resumes_and_a_cancel_gives_the_node_back(make_node):
    node = make_node(SOCKET)
    node.add("slow", priority=1000, takes=3)
    await node.start()
    await shutdown_notice(node, "--in", "110s")
    await node.until_saw("slow", "TERM")
    await node.kill()
    await node.start(wait=False)
    record = await node.over()
    assert [node.count(name, "TERM") for name in ("web", "slow", "dns")] == [1, 1, 1]
    assert any("restarted agent went on" in note.text for note in record.notes)

    async def cancelled():
        return (await shutdown_notice(node, "--cancel"))[0] == 0

    await node.until(cancelled, "the socket to answer")

    async def ready():
        return node.ready()["status"] == "True"

    await node.until(ready, "the node to be ready again")
    assert [record.outcome for record in node.records()] == [ShutdownOutcome.CANCELLED]
    code, out, _ = await shutdown_notice(node)
    assert (code, out) == (0, "no notice holds: the machine is expected to stay up\n")


async def test_what_is_refused(make_node, tmp_path):
    node = make_node(SOCKET)
    await node.start()
    code, _, err = await shutdown_notice(node, "--in", "9000h")
    assert code == 1
    assert "request: seconds: " in err
    assert (await shutdown_notice(node, "--in", "1s", "--cancel"))[0] == 2
    assert (await shutdown_notice(node, "--reason", "x"))[0] == 2
    code, _, err = await shutdown_notice(node, "--in", "1s", state=tmp_path)
    assert code == 1
    assert "is the agent running, with deadlines.socket in its configuration?" in err
    assert node.saw() == [one for one in node.saw() if one.what == "start"]


async def test_a_spot_instance_is_interrupted(make_node):
    planned = {}

    async def imds(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n")[0].split()
        said = b"token" if method == "PUT" else planned.get(path)
        status = "200 OK" if said else "404 Not Found"
        body = said or b""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nDate: Thu, 27 Nov 2025 12:00:00 GMT\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(imds, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    node = make_node(f"{PATIENT}deadlines:\n  ec2: {{endpoint: 'http://127.0.0.1:{port}', pollSeconds: 1}}\n")
    await node.start()
    await asyncio.sleep(2)
    assert node.count("web", "TERM") == 0
    planned["/latest/meta-data/spot/instance-action"] = json.dumps(
        {"action": "terminate", "time": "2025-11-27T12:02:00Z"}
    ).encode()
    record = await node.over()
    assert in_order(node)
    assert record.announced_by == ("EC2",)
    server.close()


async def test_the_power_fails_and_comes_back(make_node, tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    with DummySupply(tmp_path / "nut") as supply:
        node = make_node(f"{PATIENT}deadlines:\n  nut: {{ups: '{supply.name}', pollSeconds: 1}}\n")
        await node.start()
        await asyncio.to_thread(supply.say, "OB DISCHRG LB", battery_runtime="110")
        record = await node.over()
        assert in_order(node)
        assert record.announced_by == ("NUT",)
        await asyncio.to_thread(supply.say, "OL CHRG", battery_runtime="110")

        async def ready():
            return node.ready()["status"] == "True"

        await node.until(ready, "the node to be ready again")
    assert [record.outcome for record in node.records()] == [ShutdownOutcome.CANCELLED]
