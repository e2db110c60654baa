"""``lastcall doctor`` as an administrator runs it, on the real logind; kubelet and files are laid out below its root."""

import asyncio
import json
import os

import pytest
from support.agents.system_node import Node
from support.doctor.host import ASKS, KUBELET, Host, a_host  # noqa: F401  (fixtures)
from support.host.logind import private_logind  # noqa: F401  (fixtures)
from support.runtimes.scripted_cri import scripted_cri

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.state.agent_lock import AgentLock
from lastcall_lab.private_logind import SystemdResponse

pytestmark = pytest.mark.timeout(180)

AS_NOBODY = """\
import os
import re
import encodings.utf_8_sig
import lastcall.adapters.doctor.bus_facts, lastcall.adapters.doctor.host_facts, lastcall.cli.doctor, lastcall.doctor.all_checks
from lastcall.cli.main import main
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
main()
"""  # imported before, since others than root may not be able to read this checkout


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
    async with scripted_cri(tmp_path) as (peer, host.endpoint), host.lock("lastcall"):
        peer.answers["ListContainers"] = lambda *_: cri.ListContainersResponse()
        peer.answers["ListPodSandbox"] = lambda *_: cri.ListPodSandboxResponse()
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
    assert await session.list_inhibitors() == []
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
    await private_logind.set_mode(SystemdResponse.MASKED)
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
