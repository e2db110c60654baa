"""``lastcall doctor`` as an administrator runs it, on the real logind; kubelet and files are laid out below its root."""

import asyncio
import json
import os
import re
import socket
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.logind import private_logind  # noqa: F401
from support.scripted_cri import scripted_cri
from support.system import Node

from lastcall.adapters.agent_lock import AgentLock
from lastcall.adapters.bus import Bus
from lastcall.adapters.logind import SystemLogind
from lastcall.lab.private_logind import Mode

pytestmark = pytest.mark.timeout(180)

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: /manifests\n"
ASKS = "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"
AGENT = f"apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n{ASKS}"
BOOTED = 1_700_000_000
AS_NOBODY = """\
import os
import re
import encodings.utf_8_sig
import lastcall.adapters.host_bus, lastcall.adapters.host_facts, lastcall.cli.doctor, lastcall.graceful.doctor
from lastcall.cli.main import main
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
main()
"""  # imported before, since others than root may not be able to read this checkout


class Said:
    """What one run printed."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __getitem__(self, name):
        [check] = [check for check in json.loads(self.out)["checks"] if check["name"] == name]
        return check

    def verdict(self, name):
        return self[name]["verdict"]

    def text(self, name):
        return f"{self[name]['message']}; {self[name]['fix']}"

    @property
    def not_ok(self):
        return {check["name"] for check in json.loads(self.out)["checks"] if check["verdict"] != "ok"}


class Host:
    """A host's files below ``root``, and the command to look at it."""

    def __init__(self, root, address):
        self.root, self.address = root, address
        self.state = root / "state"
        self.config = self.write("agent.yaml", AGENT)
        self.endpoint = f"unix://{root}/none.sock"
        self.program = ["-m", "lastcall"]

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start_kubelet(self, config=KUBELET, *, arguments=(), started=100):
        """A kubelet in a proc of our own, so that no other test's doctor sees it. ``started`` is seconds after boot."""
        self.write("etc/kubelet.yaml", config)
        self.write("proc/stat", f"cpu 1 2 3\nbtime {BOOTED}\nprocesses 7\n")
        self.write("proc/31/comm", "kubelet-wrapper\n")
        self.write("proc/4711/comm", "kubelet\n")
        self.write("proc/4711/cmdline", "\0".join(["kubelet", "--config", "/etc/kubelet.yaml", *arguments, ""]))
        ticks = started * os.sysconf("SC_CLK_TCK")
        self.write("proc/4711/stat", f"4711 (a ) name) S {' '.join(['0'] * 18)} {ticks} 0 0\n")

    def write_kubelet_state(self, start, end=None, directory="var/lib/kubelet"):
        """Seconds after boot."""
        times = [datetime.fromtimestamp(BOOTED + t, UTC) if t else datetime(1, 1, 1, tzinfo=UTC) for t in (start, end)]
        state = {key: time.isoformat() for key, time in zip(("startTime", "endTime"), times, strict=True)}
        self.write(f"{directory}/graceful_node_shutdown_state", json.dumps(state))

    async def doctor(self, *arguments, config=True, output="json"):
        line = [sys.executable, *self.program, "doctor", "--state-dir", self.state, "--logind-root", self.root]
        line += ["--container-runtime-endpoint", self.endpoint, "-o", output, *arguments]
        line += ["--config", self.config] if config else []
        process = await asyncio.create_subprocess_exec(
            *map(str, line),
            env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), 60)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        assert b"Traceback" not in err, err.decode()
        return Said(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def lock(self, who, mode="delay"):
        """A lock on shutdown that somebody holds."""
        bus = await Bus.open(self.address)
        path, interface = "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
        what = ("shutdown", who, "a reason", mode)
        reply = await bus.call("org.freedesktop.login1", path, interface, "Inhibit", "ssss", *what)
        try:
            yield
        finally:
            os.close(reply.unix_fds[0])
            bus.close()

    async def reload(self):
        session = await SystemLogind(self.address).open()
        try:
            await session.reload()
            await asyncio.sleep(0.1)
        finally:
            session.close()


@pytest.fixture
def host(private_logind):  # noqa: F811
    host = Host(private_logind.root, private_logind.address)
    host.version = private_logind.version
    return host


@pytest.fixture
def without_bus(tmp_path):
    return Host(tmp_path, f"unix:path={tmp_path}/bus")


async def test_a_healthy_host_passes(host, private_logind, tmp_path):  # noqa: F811
    host.state.mkdir()
    host.start_kubelet()
    host.write("manifests/web.yaml", "kind: Pod\nspec: {priorityClassName: system-node-critical, priority: 2000001000}")
    command = "[kube-controller-manager, --disable-force-detach-on-timeout]"
    host.write("manifests/kcm.yaml", f"kind: Pod\nspec: {{containers: [{{name: kcm, command: {command}}}]}}\n")
    private_logind.write_drop_in("zz-lastcall.conf", "[Login]\nInhibitDelayMaxSec=30\n")
    await host.reload()
    agent = AgentLock(host.state)
    await asyncio.to_thread(agent.acquire)
    async with scripted_cri(tmp_path) as (_, host.endpoint), host.lock("lastcall"):
        said = await host.doctor()
        text = await host.doctor(output="text")
    agent.release()
    assert said.not_ok == (set() if os.geteuid() == 0 else {"user"}), said.out
    assert said.code == text.code == 0
    assert json.loads(said.out)["failures"] == 0
    assert str(host.version) in said.text("systemd")
    assert f"pid {os.getpid()}" in said.text("agent")
    assert "containerd 1.6.20 answers at unix://" in said.text("runtime")
    lines = text.out.splitlines()
    assert [line.split()[0] for line in lines if line[:1].strip()][-1] == "0", "the sum comes last"
    assert any(line.startswith("ok    delay-limit") for line in lines)


async def test_a_look_leaves_no_trace(host):
    before = sorted(host.root.rglob("*conf*"))
    said = await host.doctor()
    assert said.verdict("lock") == "ok"
    assert not host.state.exists()
    assert sorted(host.root.rglob("*conf*")) == before
    session = await SystemLogind(host.address).open()
    assert await session.inhibitors() == []
    session.close()


async def test_a_rival_drop_in_is_named(host, private_logind):  # noqa: F811
    private_logind.write_drop_in("zz-lastcall.conf", "[Login]\nInhibitDelayMaxSec=30\n")
    private_logind.write_drop_in("zzz-rival.conf", "[Login]\nInhibitDelayMaxSec=7\n", "run/systemd")
    await host.reload()
    said = await host.doctor(output="text")
    assert said.code == 1
    [index] = [number for number, line in enumerate(said.out.splitlines()) if line.startswith("FAIL  delay-limit")]
    finding, fix = said.out.splitlines()[index : index + 2]
    assert "logind grants 7 s of the 30 s asked for: /run/systemd/logind.conf.d/zzz-rival.conf says" in finding
    assert fix.strip() == "fix: make an empty file /etc/systemd/logind.conf.d/zzz-rival.conf, which hides it"
    assert "mend the failures" in said.out.splitlines()[-1]


async def test_a_limit_that_the_agent_will_raise_is_only_a_warning(host):
    said = await host.doctor()
    assert said.verdict("delay-limit") == "warning"
    assert "logind grants 5 s of the 30 s asked for, its default" in said.text("delay-limit")


async def test_masked_targets_are_named(host, private_logind):  # noqa: F811
    await private_logind.set_mode(Mode.MASKED)
    said = await host.doctor()
    assert said.code == 1
    assert said.verdict("targets") == "failure"
    assert "systemctl unmask poweroff.target reboot.target" in said.text("targets")


async def test_a_kubelet_with_a_lock_beside_the_agents(host):
    host.start_kubelet(KUBELET + ASKS)
    async with host.lock("kubelet"):
        said = await host.doctor()
        assert said.verdict("kubelet") == "warning"
        async with host.lock("lastcall"):
            said = await host.doctor()
    assert said.verdict("kubelet") == "failure"
    assert f"(pid {os.getpid()}) holds a delay lock beside lastcall" in said.text("kubelet")
    assert said.code == 1


async def test_a_kubelet_that_never_armed(host):
    host.start_kubelet(KUBELET + ASKS)
    said = await host.doctor()
    assert said.verdict("kubelet") == "failure"
    assert "(pid 4711) asks for 30s and holds no delay lock: it never armed" in said.text("kubelet")


async def test_the_kubelets_drop_ins_count(host):
    host.start_kubelet(KUBELET + ASKS, arguments=["--config-dir=/etc/kubelet.d"])
    host.write("etc/kubelet.d/10-other.conf", f"{KUBELET}maxPods: 7\n")
    assert (await host.doctor()).verdict("kubelet") == "failure"
    host.write("etc/kubelet.d/20-zero.conf", f"{KUBELET}shutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s\n")
    assert (await host.doctor()).verdict("kubelet") == "ok"


async def test_a_kubelet_that_is_stuck_in_a_shutdown(host):
    host.start_kubelet(arguments=["--root-dir=/var/lib/other"])
    host.write_kubelet_state(200, directory="var/lib/other")
    said = await host.doctor()
    assert said.verdict("kubelet-state") == "failure"
    assert "(pid 4711) is still in the shutdown of 2023-11-14T22:16:40+00:00" in said.text("kubelet-state")
    host.write_kubelet_state(50, directory="var/lib/other")
    assert (await host.doctor()).verdict("kubelet-state") == "ok", "it has started since"


async def test_a_kubelet_in_a_shutdown_that_is_under_way(host, private_logind):  # noqa: F811
    host.start_kubelet()
    host.write_kubelet_state(200)
    async with host.lock("kubelet"):
        await private_logind.power_off()
        said = await host.doctor()
    assert said.verdict("kubelet-state") == "ok"
    assert said.verdict("shutdown") == "warning"
    assert "a poweroff is under way" in said.text("shutdown")
    assert said.verdict("lock") == "unknown"
    assert "a shutdown is being prepared" in said.text("lock")


async def test_a_scheduled_shutdown(host, private_logind):  # noqa: F811
    await private_logind.schedule("reboot", 3600)
    said = await host.doctor()
    assert said.verdict("shutdown") == "warning"
    assert "a reboot is scheduled" in said.text("shutdown")
    await private_logind.cancel_schedule()
    assert (await host.doctor()).verdict("shutdown") == "ok"


async def test_others_with_a_lock_are_named(host):
    async with host.lock("Unattended Upgrades Shutdown"), host.lock("dpkg", "block"):
        said = await host.doctor()
    if host.version < 257:  # later, the lock that blocks is what matters
        assert f"'Unattended Upgrades Shutdown' (pid {os.getpid()}, delay" in said.text("other-locks")
    assert f"'dpkg' (pid {os.getpid()}, block: a reason)" in said.text("other-locks")
    assert said.verdict("other-locks") == ("ok" if host.version < 257 else "warning")


async def test_an_agent_that_runs_is_seen_with_its_lock(private_logind, tmp_path):  # noqa: F811
    node = Node(tmp_path, private_logind)
    host = Host(private_logind.root, private_logind.address)
    host.state, host.config = node.state, node.config
    try:
        node.add("web")
        await node.start()
        said = await host.doctor()
        assert said.verdict("agent") == said.verdict("delay-limit") == "ok"
        assert f"the agent (pid {node.process.pid}) runs and is armed" in said.text("agent")
        await node.kill()
        said = await host.doctor()
        assert said.verdict("agent") == "warning"
        assert "a lock is held for one" in said.text("agent"), "by the holder that outlives the agent"
    finally:
        await node.clean_up()


async def test_critical_static_pods_without_a_number_are_named(host):
    host.start_kubelet()
    host.write("manifests/etcd.yaml", "kind: Pod\nspec: {priorityClassName: system-node-critical}\n")
    host.write("manifests/.hidden.yaml", "kind: Pod\nspec: {priorityClassName: system-node-critical}\n")
    host.write("manifests/web.yaml", "kind: Pod\nspec: {priorityClassName: mine}\n")
    said = await host.doctor()
    assert said.verdict("static-pods") == "warning"
    assert said["static-pods"]["message"].endswith(f": {host.root}/manifests/etcd.yaml")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_others_than_root_are_told_what_they_may_not(host):
    host.program = ["-c", AS_NOBODY]
    said = await host.doctor()
    assert said.code == 1
    assert "uid 65534 is not root" in said.text("user")
    assert said.verdict("lock") == "failure"
    assert "refuses Inhibit" in said.text("lock")
    assert said.verdict("drop-in") == "warning"
    assert said.verdict("delay-limit") == "failure"
    assert said.verdict("state-dir") == "failure"


# -- hosts where little answers ----------------------------------------------------------------------------------------


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
