"""Nodes that go down as a real kubelet does it (research: what a kubelet 1.36 was seen to do)."""

import pytest
from support.agents.virtual_parts import phases
from support.lab.node_shutdown import CRITICAL, TWO, at, off, pods
from support.lab.virtual_node import on_node

from lastcall.ports.node import LogindChange
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.fakes.logind import FakeLogind
from lastcall_lab.kubelet.node.kubelet_shutdown_manager import KubeletShutdownManager

FOR_EVER = float("inf")


def with_kubelet(node, groups=TWO, files=()):
    """A machine with nothing but a kubelet."""
    logind = FakeLogind(node.clock)
    for name, value in files:
        logind.files.put(name, value)
    logind.reload()
    manager = KubeletShutdownManager(
        node.kubelet, groups, logind=logind, files=logind.files, release=logind.close, clock=node.clock
    )
    node.group.start(manager.run(), "shutdown manager")
    return logind, manager


async def going_down(node):
    """A machine with two pods and nothing but a kubelet, whose button has been pressed."""
    await pods(node)
    logind, manager = with_kubelet(node)
    await node.clock.sleep(1)
    await logind.power_off()
    return logind, manager


@on_node({"app/main": ContainerScript(after_term=3, code=143), "dns/main": ContainerScript(after_term=1, code=0)})
async def test_the_kubelet_ends_pods_in_phases(node):
    await pods(node)
    logind, manager = with_kubelet(node)
    await node.clock.sleep(1)
    assert manager.is_armed
    begin = node.clock.boottime()
    took = await off(node, logind)
    assert at(node, "app", "TERM") - begin < 0.2
    assert 0.5 <= at(node, "dns", "TERM") - at(node, "app", "exit") <= 1.0, "volumes are looked for"
    assert 4.5 < took < 7
    await node.clock.sleep(1)
    assert (node.phase("app"), node.status("app")["reason"]) == ("Failed", "Terminated")
    assert node.phase("dns") == "Succeeded", "exit code 0 succeeds"
    assert "reason" not in node.status("dns")
    for name in ("app", "dns"):
        target = node.conditions(name)["DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")


@on_node({"app/main": ContainerScript(after_term=FOR_EVER)})
async def test_phases_overlap(node):
    """The timer starts at the signal, the grace at the SIGTERM: the straggler dies after the next phase has begun."""
    await pods(node)
    logind, _ = with_kubelet(node)
    await node.clock.sleep(1)
    uid = {node.uids[name]: name for name in ("app", "dns")}
    begin = node.clock.boottime()
    await off(node, logind)
    await node.clock.sleep(1)
    told = [(one.at - begin, uid[one.uid], one.what) for one in node.runtime.deliveries if one.at >= begin]
    kill = next(when for when, name, what in told if (name, what) == ("app", "KILL"))
    term = next(when for when, name, what in told if (name, what) == ("dns", "TERM"))
    assert 19.9 < term < kill < 20.5


@on_node({"dns/main": ContainerScript(after_term=FOR_EVER)})
async def test_in_the_last_phase_the_lock_is_released_before_the_kill(node):
    await pods(node)
    logind, _ = with_kubelet(node)
    await node.clock.sleep(1)
    begin = node.clock.boottime()
    took = await off(node, logind)
    await node.clock.sleep(1)
    kill = next(one.at for one in node.runtime.deliveries if one.what == "KILL")
    assert kill - begin >= took


@on_node({"app/main": ContainerScript(after_term=5)})
async def test_pods_stay_ready_until_they_have_ended(node):
    await going_down(node)
    await node.clock.sleep(4)
    assert node.ready("app")
    assert "deletionTimestamp" not in node.pod("app")["metadata"]
    assert node.node_condition()["message"] == "node is shutting down"


@on_node({"app/main": ContainerScript(after_term=5)})
async def test_not_ready_is_not_waited_for(node):
    await pods(node)
    logind, _ = with_kubelet(node)
    await node.clock.sleep(1)
    node.line.cut = True
    begin = node.clock.boottime()
    await off(node, logind)
    assert at(node, "app", "TERM") - begin < 0.2, "an API server that is away changes nothing"


@on_node({"app/main": ContainerScript(after_term=5), "dns/main": ContainerScript(after_term=2)})
async def test_a_cancellation_is_heard_when_all_is_over(node):
    logind, manager = await going_down(node)
    await node.clock.sleep(1)
    logind._forget_shutdown()
    logind._notify_sessions(LogindChange.CANCELLED)
    await node.clock.sleep(3)
    assert node.node_condition()["status"] == "False"
    await node.clock.sleep(10)
    assert at(node, "dns", "TERM"), "the second phase was begun all the same"
    assert node.node_condition()["status"] == "True"
    assert manager.is_armed
    await node.clock.sleep(60)
    assert [what for _, what in node.deliveries("app")].count("start") == 1, "what was ended stays ended"
    assert ("Shutdown", "Shutdown manager detected shutdown cancellation") in node.events("n1")


@on_node({"app/main": ContainerScript(after_term=1), "dns/main": [ContainerScript(), ContainerScript()]})
async def test_a_pod_whose_phase_has_not_begun_is_restarted(node):
    await pods(node)
    await node.started("slow", {"name": "slow"}, terminationGracePeriodSeconds=30)
    node.behave["slow"] = ContainerScript()
    logind, _ = with_kubelet(node, phases((0, 20), (2_000_000_000, 10)))
    await node.clock.sleep(1)
    hold = node.runtime._actors[f"{node.uids['slow']}/slow"]
    hold.behaviour = ContainerScript(after_term=15)
    await logind.power_off()
    await node.clock.sleep(2)
    node.runtime.exit_container(f"{node.uids['dns']}/main", 1)
    await node.clock.sleep(3)
    assert [what for _, what in node.deliveries("dns")].count("start") == 2
    assert [what for _, what in node.deliveries("app")].count("start") == 1


@on_node()
async def test_a_limit_that_others_win_means_no_protection(node):
    await pods(node)
    files = [("unattended-upgrades-logind-maxdelay.conf", "30")]
    logind, manager = with_kubelet(node, phases((0, 100), (2_000_000_000, 20)), files)
    await node.clock.sleep(10)
    assert not manager.is_armed
    assert await off(node, logind) < 0.1
    assert at(node, "app", "TERM") is None
    assert node.node_condition()["status"] == "True"


@on_node()
async def test_it_raises_the_limit_where_it_can(node):
    logind, manager = with_kubelet(node, phases((0, 100), (2_000_000_000, 20)))
    await node.clock.sleep(5)
    assert manager.is_armed
    assert logind.limit == 120
    assert logind.files.list_drop_ins()[0].path.endswith("99-kubelet.conf")


@on_node()
async def test_a_bus_that_is_not_there_at_the_start_is_never_tried_again(node):
    logind = FakeLogind(node.clock)
    logind.stop_bus()
    manager = KubeletShutdownManager(
        node.kubelet, TWO, logind=logind, files=logind.files, release=logind.close, clock=node.clock
    )
    node.group.start(manager.run(), "shutdown manager")
    await node.clock.sleep(1)
    logind.start_bus()
    logind.restart_logind()
    await node.clock.sleep(60)
    assert not manager.is_armed


@on_node()
async def test_a_bus_that_is_lost_later_is(node):
    logind, manager = with_kubelet(node)
    await node.clock.sleep(1)
    logind.stop_bus()
    await node.clock.sleep(5)
    assert not manager.is_armed
    logind.start_bus()
    logind.restart_logind()
    await node.clock.sleep(5)
    assert manager.is_armed


@on_node({"app/main": ContainerScript(after_term=10)})
async def test_a_kubelet_that_begins_anew_knows_nothing(node):
    """It is not in shutdown: it cannot take the lock, and admits and starts pods again."""
    logind, _ = await going_down(node)
    await node.clock.sleep(1)
    await node.group.cancel()
    await node.clock.sleep(1)
    node.boot()
    logind._preparing = True
    manager = KubeletShutdownManager(
        node.kubelet, TWO, logind=logind, files=logind.files, release=logind.close, clock=node.clock
    )
    node.group.start(manager.run(), "shutdown manager")
    await node.clock.sleep(5)
    assert not manager.is_armed
    await node.started("late")


@on_node({"app/main": ContainerScript(after_term=5)})
async def test_new_pods_are_refused_critical_ones_too(node):
    await going_down(node)
    await node.clock.sleep(1)
    await node.create("late", **CRITICAL)
    await node.clock.sleep(1)
    assert node.status("late")["reason"] == "NodeShutdown"
    assert ("Shutdown", "Shutdown manager detected shutdown event") in node.events("n1")


@on_node({"app/main": ContainerScript(after_term=FOR_EVER), "dns/main": ContainerScript(after_term=FOR_EVER)})
async def test_a_phase_of_no_seconds_waits_for_nobody(node):
    await pods(node)
    logind, _ = with_kubelet(node, phases((0, 5), (2_000_000_000, 0)))
    await node.clock.sleep(1)
    assert 4.9 < await off(node, logind) < 5.5


@on_node()
async def test_without_groups_nothing_is_done(node):
    await pods(node)
    logind, manager = with_kubelet(node, ())
    await node.clock.sleep(1)
    assert not manager.is_armed
    assert await off(node, logind) < 0.1


@pytest.mark.parametrize(
    ("asked", "seconds", "took"), [(None, 20, 20), (5, 20, 5), (60, 20, 20)], ids=["nothing", "less", "more"]
)
def test_the_grace_is_the_smaller_of_two(asked, seconds, took):
    @on_node({"app/main": ContainerScript(after_term=FOR_EVER)})
    async def run(node):
        spec = {} if asked is None else {"terminationGracePeriodSeconds": asked}
        await node.started("app", **spec)
        logind, _ = with_kubelet(node, phases((0, seconds)))
        await node.clock.sleep(1)
        await logind.power_off()
        await node.clock.sleep(seconds + 5)
        between = at(node, "app", "KILL") - at(node, "app", "TERM")
        assert round(between) == took

    run()
