"""The agent as a service: its status page and what it tells systemd."""

import asyncio
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest
from support.agents.system_node import PATIENT, Node
from support.host.logind import private_logind  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def node(private_logind, tmp_path):  # noqa: F811
    node = Node(tmp_path, private_logind)
    yield node
    await node.clean_up()


def get(node, path):
    port = re.findall(r"metrics at http://127.0.0.1:(\d+)/", node.log.read_text())[-1]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metrics(node):
    status, text = get(node, "/metrics")
    assert status == 200
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


async def until_completed(node):
    """The metrics as soon as they count the shutdown, and its record."""

    async def counted():
        return (await asyncio.to_thread(metrics, node)).get('lastcall_shutdowns_total{outcome="Completed"}') == "1.0"

    await node.until(counted, "the shutdown to be counted")
    return await asyncio.to_thread(metrics, node), await node.over()


async def test_metrics_before_and_after_a_shutdown(node):
    node.add("web", takes=1)
    node.add("overlong", grace=60, ignores_term=True)
    node.add("dns", priority=2_000_000_000)
    await node.start()
    before = await asyncio.to_thread(metrics, node)
    assert before["lastcall_agent_armed"] == "1.0"
    assert before["lastcall_agent_logind_reachable"] == "1.0"
    assert before["lastcall_agent_requested_seconds"] == "16.0"
    assert before["lastcall_agent_granted_seconds"] == "16.0"
    assert before["lastcall_agent_degraded"] == "0.0"
    assert before["kubelet_graceful_shutdown_start_time_seconds"] == "0.0"
    await node.logind.power_off()
    await node.logind.wait_for_start()
    after, record = await until_completed(node)
    assert float(after["kubelet_graceful_shutdown_start_time_seconds"]) == pytest.approx(record.wall)
    assert float(after["kubelet_graceful_shutdown_end_time_seconds"]) == pytest.approx(record.wall + record.released)
    assert after['lastcall_shutdown_pods_total{outcome="Graceful"}'] == "2.0"
    assert after['lastcall_shutdown_pods_total{outcome="Killed"}'] == "1.0"
    assert after["lastcall_shutdown_pods_cut_short_total"] == "1.0"
    first = record.phases[0]
    assert float(after['lastcall_shutdown_phase_duration_seconds{priority="0"}']) == pytest.approx(
        first.ended - first.started
    )
    assert after["lastcall_agent_armed"] == "0.0"


async def test_a_restarted_agent_counts_the_whole_shutdown(node):
    node.config.write_text(PATIENT)
    node.add("web", takes=1)
    node.add("db", priority=1000, takes=2)
    await node.start()
    await node.logind.power_off()
    await node.until_saw("db", "TERM")
    await node.kill()
    await node.start(wait=False)
    await node.logind.wait_for_start()
    after, _ = await until_completed(node)
    assert after["lastcall_shutdown_resumed_total"] == "1.0"
    assert after['lastcall_shutdown_pods_total{outcome="Graceful"}'] == "2.0"


async def test_health_and_readiness(node):
    await node.start()
    assert await asyncio.to_thread(get, node, "/healthz") == (200, "ok\n")
    armed = (200, "armed: 16s for the pods when the machine shuts down\n")
    async with asyncio.timeout(60):  # until logind has raised its limit
        while await asyncio.to_thread(get, node, "/readyz") != armed:
            await asyncio.sleep(0.1)
    await asyncio.to_thread(node.logind.stop_bus)
    node.config.write_text("apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n")
    node.process.send_signal(signal.SIGHUP)

    async def idle():
        return "idle" in (await asyncio.to_thread(get, node, "/readyz"))[1]

    await node.until(idle, "the agent to be idle")
    assert (await asyncio.to_thread(get, node, "/readyz"))[0] == 200, "told to do nothing, and does it"
    assert (await asyncio.to_thread(get, node, "/nothing"))[0] == 404


async def test_not_ready_without_logind(node):
    await asyncio.to_thread(node.logind.stop_bus)
    await node.start(wait=False)

    async def told():
        return "not armed" in node.log.read_text()

    await node.until(told, "the agent to have looked for logind")
    status, text = await asyncio.to_thread(get, node, "/readyz")
    assert status == 503
    assert text.startswith("not armed: ")
    after = await asyncio.to_thread(metrics, node)
    assert after["lastcall_agent_logind_reachable"] == "0.0"
    assert float(after["lastcall_agent_logind_retries_total"]) >= 1


async def test_what_it_tells_systemd(node, tmp_path, monkeypatch):
    place = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(place))
        receiver.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(place))
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")
        told = []

        async def heard(*words):
            while True:
                try:
                    told.extend(receiver.recv(4096).decode().splitlines())
                except BlockingIOError:
                    break
            return all(told.count(word) >= words.count(word) for word in words)

        await node.start()
        await node.until(lambda: heard("READY=1", "WATCHDOG=1", "WATCHDOG=1"), "the watchdog to be petted twice")
        node.process.send_signal(signal.SIGHUP)
        await node.until(lambda: heard("READY=1", "RELOADING=1", "READY=1"), "the configuration to be read anew")
        assert await node.stop() == 0
        assert await heard("STOPPING=1")
    assert told.index("READY=1") < told.index("RELOADING=1") < told.index("STOPPING=1")
    assert told[told.index("RELOADING=1") + 1].startswith("MONOTONIC_USEC=")
    assert "READY=1" in told[told.index("RELOADING=1") :]
    assert any(line.startswith("STATUS=armed: 16s for the pods") for line in told)
