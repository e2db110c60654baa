"""``lastcall doctor`` on hosts where little answers, and with files that are none, as an administrator runs it."""

import asyncio
import os
import re
import socket
from pathlib import Path

import pytest
from support.doctor.host import AGENT, ASKS, KUBELET, a_host, a_host_without_bus  # noqa: F401  (fixtures)
from support.host.logind import private_logind  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


async def test_a_host_without_systemd_gets_a_clear_message(without_bus):
    said = await without_bus.doctor(output="text")
    assert said.code == 1
    assert re.search(r"^FAIL  systemd +systemd does not run on this host", said.out, re.MULTILINE)
    assert "mount the host's /run/dbus" in said.out
    assert said.err == ""


async def test_a_bus_that_is_not_there(without_bus):
    (without_bus.root / "run/systemd/system").mkdir(parents=True)
    said = await without_bus.doctor()
    assert said.code == 1
    assert said.verdict("systemd") == "unknown"
    assert said.verdict("logind") == "failure"
    assert f"there is no message bus at unix:path={without_bus.root}/bus" in said.text("logind")
    assert {said.verdict(name) for name in ("shutdown", "delay-limit", "lock", "kubelet")} == {"unknown"}


async def test_services_that_never_answer_are_not_waited_for(without_bus):
    silent = {name: socket.socket(socket.AF_UNIX) for name in ("bus", "cri.sock")}
    for name, listener in silent.items():
        listener.bind(str(without_bus.root / name))
        listener.listen()
    without_bus.endpoint = f"unix://{without_bus.root}/cri.sock"
    (without_bus.root / "run/systemd/system").mkdir(parents=True)
    said = await without_bus.doctor()
    for listener in silent.values():
        listener.close()
    assert "no answer within 2 s" in said.text("logind")
    assert said.verdict("runtime") == "failure"
    assert "no answer in time" in said.text("runtime")


async def test_a_bus_without_logind(host, private_logind):  # noqa: F811
    await asyncio.to_thread(private_logind.stop_logind)
    said = await host.doctor()
    assert said.verdict("systemd") == "ok"
    assert said.verdict("logind") == "failure"
    assert "org.freedesktop.login1 is not on the bus" in said.text("logind")
    assert "systemctl status dbus systemd-logind" in said.text("logind")


# -- files -------------------------------------------------------------------------------------------------------------


async def test_no_configuration_where_the_kubelet_has_its_own(without_bus):
    said = await without_bus.doctor(config=False)
    assert said.verdict("configuration") == "unknown"
    assert "/etc/lastcall/agent.yaml: No such file" in said.text("configuration")
    without_bus.write("etc/lastcall/agent.yaml", KUBELET + ASKS)
    said = await without_bus.doctor(config=False)
    assert "KubeletConfiguration asks for 30s" in said.text("configuration")


async def test_a_configuration_that_was_named_must_be_there(without_bus):
    without_bus.config = without_bus.root / "missing.yaml"
    said = await without_bus.doctor()
    assert (said.code, said.out) == (2, "")
    assert said.err == f"lastcall: --config: {without_bus.root}/missing.yaml: No such file or directory\n"


async def test_a_pipe_is_no_configuration(without_bus):
    without_bus.config = without_bus.root / "pipe"
    os.mkfifo(without_bus.config)
    said = await without_bus.doctor()
    assert said.code == 2
    assert "not a regular file" in said.err


async def test_a_wrong_configuration_is_a_finding(without_bus):
    without_bus.config.write_text(f"{AGENT}mode: Maybe\nshutdownGrace: 1s\n")
    said = await without_bus.doctor()
    assert said.code == 1
    assert said.verdict("configuration") == "failure"
    assert "mode" in said.text("configuration")
    assert "did you mean shutdownGracePeriod?" in said.text("configuration")


@pytest.mark.parametrize("arguments", [("--container-runtime-endpoint", "tcp://1.2.3.4:5"), ("-o", "yaml"), ("x",)])
async def test_wrong_usage(without_bus, arguments):
    said = await without_bus.doctor(*arguments)
    assert (said.code, said.out) == (2, "")


async def test_the_kubelets_directory_is_refused(without_bus):
    (without_bus.state / "plugins_registry").mkdir(parents=True)
    said = await without_bus.doctor()
    assert said.verdict("state-dir") == "failure"
    assert "the kubelet's own directory" in said.text("state-dir")


async def test_a_state_directory_that_is_a_file(without_bus):
    without_bus.state = without_bus.write("taken", "") / "state"
    said = await without_bus.doctor()
    assert said.verdict("state-dir") == "failure"
    assert "is not a directory" in said.text("state-dir")


async def test_a_state_directory_in_memory(without_bus):
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    places = [Path(words[1]) for words in mounts if words[2] == "tmpfs" and os.access(words[1], os.W_OK)]
    roomy = [place for place in places if os.statvfs(place).f_bavail * os.statvfs(place).f_frsize > 2**26]
    if not roomy:
        pytest.skip("there is no file system in memory with room to write to")
    without_bus.state = roomy[0] / "lastcall-test-never-made"
    said = await without_bus.doctor()
    assert said.verdict("state-dir") == "warning"
    assert "in memory" in said.text("state-dir")
    assert not without_bus.state.exists()
