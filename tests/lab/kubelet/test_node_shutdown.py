"""Nodes of the lab that go down by the graceful core, and what their kubelet says of it."""

from support.agents.virtual_machine import Disk
from support.lab.node_shutdown import CRITICAL, at, off, pods, with_agent
from support.lab.virtual_node import on_node

from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.fakes.lock_keeper import FakeLockHolder
from lastcall_lab.fakes.logind import FakeLogind


@on_node({"app/main": ContainerScript(after_term=3), "dns/main": ContainerScript(after_term=1)})
async def test_the_core_ends_the_pods_in_phases_and_the_kubelet_says_so(node):
    await pods(node)
    logind = with_agent(node)
    await node.clock.sleep(1)
    assert 3 <= await off(node, logind) < 10
    assert at(node, "dns", "TERM") >= at(node, "app", "exit")
    for name in ("app", "dns"):
        status = node.status(name)
        assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
        assert status["message"] == "Pod was terminated in response to imminent node shutdown."
        target = node.conditions(name)["DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
        assert node.conditions(name)["Ready"]["reason"] == "PodFailed"
        assert "terminated" in node.container(name)["state"]
    ready = node.node_condition()
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False",
        "KubeletNotReady",
        "node is shutting down",
    )
    assert ("Shutdown", "Shutdown manager detected shutdown event") in node.events("n1")


@on_node({"app/main": ContainerScript(after_term=3)})
async def test_not_ready_comes_before_the_first_kill(node):
    await pods(node)
    logind = with_agent(node)
    await node.clock.sleep(1)
    seen = []
    stop = node.runtime.stop_container

    async def spy(run, grace):
        seen.append(node.node_condition()["status"])
        return await stop(run, grace)

    node.runtime.stop_container = spy
    await off(node, logind)
    assert seen[0] == "False"


@on_node({"app/main": ContainerScript(after_term=9)})
async def test_what_was_being_prepared_when_the_shutdown_began_is_not_started(node):
    """Volumes can take long; what comes of a start that was ordered after the button nobody would end."""
    await pods(node)
    logind = with_agent(node)
    create = node.runtime.create_sandbox

    async def slow(pod):
        await node.clock.sleep(5)
        return await create(pod)

    node.runtime.create_sandbox = slow
    await node.create("late")
    await node.clock.sleep(1)
    assert await off(node, logind) > 8
    assert node.deliveries("late") == []
    assert ("Started", "Container started") not in node.events("late")


@on_node({"app/main": ContainerScript(after_term=9)})
async def test_and_is_started_when_the_shutdown_is_called_off(node):
    logind = with_agent(node)
    create = node.runtime.create_sandbox

    async def slow(pod):
        await node.clock.sleep(5)
        return await create(pod)

    await pods(node)
    node.runtime.create_sandbox = slow
    await node.create("late")
    await node.clock.sleep(4)
    await logind.power_off()
    await node.clock.sleep(3)
    assert at(node, "late", "start") is None
    await logind.cancel_schedule()
    await node.until(lambda: at(node, "late", "start"))


@on_node(
    {
        "app/main": ContainerScript(after_term=3),
        "done/main": ContainerScript(lives=5),
        "dns/main": ContainerScript(after_term=9),
    }
)
async def test_a_pod_that_is_broken_off_has_never_succeeded(node):
    """Whatever its exit code is, and whatever its Job would make of it; one that was done before its turn came has."""
    for name in ("app", "done"):
        await node.started(name, restartPolicy="Never", **(CRITICAL if name == "done" else {}))
    await node.started("dns", **CRITICAL)
    told = []
    request = node.line.request

    async def spy(method, target, headers, body, **options):
        told.append((target.split("?")[0], body))
        return await request(method, target, headers, body, **options)

    node.line.request = spy
    logind = with_agent(node)
    await node.clock.sleep(3)
    await off(node, logind)
    assert node.phase("app") == "Failed"
    assert node.status("app")["reason"] == "Terminated"
    said = [body for target, body in told if target.endswith("/pods/app/status")]
    assert said
    assert not any(b"Succeeded" in body for body in said)
    assert node.phase("done") == "Succeeded"


@on_node({"app/main": ContainerScript(after_term=3, code=1), "other/main": ContainerScript(lives=5, code=1)})
async def test_nothing_is_restarted_and_nothing_begins(node):
    await pods(node)
    logind = with_agent(node)
    await node.clock.sleep(1)
    await logind.power_off()
    await node.clock.sleep(1)
    await node.create("late")
    await node.clock.sleep(2)
    assert node.status("late")["reason"] == "NodeShutdown"
    await node.clock.sleep(120)
    for name in ("app", "dns"):
        assert [what for _, what in node.deliveries(name)].count("start") == 1
    assert node.runtime.running() == []


@on_node({"app/main": ContainerScript(after_term=5)})
async def test_without_an_api_server_it_goes_on_and_is_told_later(node):
    await pods(node)
    logind = with_agent(node)
    await node.clock.sleep(1)
    node.line.cut = True
    assert await off(node, logind) < 20
    assert node.phase("app") == "Running"
    node.line.cut = False
    await node.until(lambda: node.phase("app") == "Failed", 120)
    assert node.status("app")["reason"] == "Terminated"


@on_node({"app/main": ContainerScript(after_term=5), "dns/main": ContainerScript(after_term=5, code=3)})
async def test_a_shutdown_that_is_called_off(node):
    await pods(node)
    logind = with_agent(node)
    await node.clock.sleep(1)
    await logind.power_off()
    await node.clock.sleep(2)
    await logind.cancel_schedule()
    await node.until(lambda: node.node_condition()["status"] == "True", 20)
    await node.until(lambda: node.phase("app") == "Failed", 20)
    assert node.phase("dns") == "Running"
    node.runtime.exit_container(f"{node.uids['dns']}/main", 1)
    await node.until(lambda: node.container("dns")["restartCount"] == 1, 20)
    assert ("Shutdown", "Shutdown manager detected shutdown cancellation") in node.events("n1")


@on_node({"app/main": ContainerScript(after_term=10), "dns/main": ContainerScript(after_term=2)})
async def test_both_begin_anew_in_the_middle(node):
    """What has been ended is not started again: the agent looks first, and goes on."""
    await pods(node)
    disk = Disk()
    logind = FakeLogind(node.clock)
    holder = FakeLockHolder(logind, node.clock)
    with_agent(node, logind=logind, holder=holder, disk=disk)
    await node.clock.sleep(1)
    await logind.power_off()
    await node.clock.sleep(3)
    node.agent.cancel()
    await node.stop()
    await node.clock.sleep(1)
    node.boot()
    with_agent(node, logind=logind, holder=holder, disk=disk)
    await logind.wait_for_start(seconds=60)
    await node.clock.sleep(1)
    for name in ("app", "dns"):
        assert [what for _, what in node.deliveries(name)] == ["start", "TERM", "exit"]
        assert (node.phase(name), node.status(name)["reason"]) == ("Failed", "Terminated")
    assert node.node_condition()["message"] == "node is shutting down"


@on_node({"app/main": ContainerScript(after_term=10), "dns/main": ContainerScript(after_term=2)})
async def test_both_begin_anew_and_logind_cannot_be_asked(node):
    """Nothing is started before it is known whether the shutdown goes on."""
    await pods(node)
    disk = Disk()
    logind = FakeLogind(node.clock)
    holder = FakeLockHolder(logind, node.clock)
    with_agent(node, logind=logind, holder=holder, disk=disk)
    await node.clock.sleep(1)
    await logind.power_off()
    await node.clock.sleep(3)
    node.agent.cancel()
    await node.stop()
    logind.stop_bus()
    await node.clock.sleep(1)
    node.boot()
    with_agent(node, logind=logind, holder=holder, disk=disk)
    await node.create("late")
    await node.clock.sleep(20)
    assert node.deliveries("late") == []
    assert [what for _, what in node.deliveries("dns")] == ["start"]


@on_node({"app/main": ContainerScript(after_term=1), "dns/main": ContainerScript(after_term=2)})
async def test_called_off_while_neither_ran_the_kubelet_starts_again_what_has_ended(node):
    await pods(node)
    disk = Disk()
    logind = FakeLogind(node.clock)
    holder = FakeLockHolder(logind, node.clock)
    with_agent(node, logind=logind, holder=holder, disk=disk)
    await node.clock.sleep(1)
    await logind.power_off()
    await node.clock.sleep(0.5)
    node.agent.cancel()
    await node.stop()
    await node.clock.sleep(2)
    assert [what for _, what in node.deliveries("app")] == ["start", "TERM", "exit"]
    await logind.cancel_schedule()
    node.boot()
    with_agent(node, logind=logind, holder=holder, disk=disk)
    await node.until(lambda: node.container("app")["restartCount"] == 1 and node.container("app")["ready"], 60)
    assert node.node_condition()["status"] == "True"
