"""Kubelets of the lab that begin anew: what they take over, go on with and begin again."""

from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import PODS
from lastcall_lab.fakes.actor_runtime import ContainerScript

SLOW = ContainerScript(after_term=10)


@on_node({"main": ContainerScript()})
async def test_a_new_kubelet_takes_pods_over(node):
    await node.started("web")
    await node.clock.sleep(5)
    before = node.container("web")
    await node.stop()
    await node.clock.sleep(30)
    node.boot()
    await node.clock.sleep(30)
    assert node.container("web") == before
    assert node.ready("web")
    assert [what for _, what in node.deliveries("web")] == ["start"]
    await node.deleted()


@on_node({"main": ContainerScript(lives=20, code=3)})
async def test_it_hears_of_what_has_ended_meanwhile(node):
    await node.started("web", restartPolicy="Never")
    await node.stop()
    await node.clock.sleep(30)
    node.boot()
    await node.until(lambda: node.phase("web") == "Failed", 10)
    assert node.container("web")["state"]["terminated"]["exitCode"] == 3


@on_node({"main": ContainerScript(lives=20, code=3)})
async def test_and_restarts_it(node):
    await node.started("web")
    await node.stop()
    await node.clock.sleep(30)
    node.boot()
    await node.until(lambda: node.container("web")["restartCount"] == 1, 10)
    assert node.container("web")["lastState"]["terminated"]["exitCode"] == 3


@on_node()
async def test_what_it_has_started_without_a_word_is_ready_too(node):
    """It died when the runtime had started the container, and before the API server was told."""
    await node.started("web")
    await node.stop()
    waiting = {"state": {"waiting": {}}, "started": False, "ready": False, "containerID": ""}
    status = {"containerStatuses": [{**node.container("web"), **waiting}]}
    await node.client.patch(PODS, "web", {"status": status}, namespace="default", subresource="status")
    assert not node.container("web")["ready"]
    node.boot()
    await node.until(lambda: node.container("web")["ready"], 10)


@on_node({"main": SLOW})
async def test_it_goes_on_with_a_deletion(node):
    await node.started("web", terminationGracePeriodSeconds=60)
    await node.delete("web")
    await node.clock.sleep(3)
    await node.stop()
    await node.clock.sleep(1)
    node.boot()
    await node.until(lambda: node.pod("web") is None, 20)
    assert [what for _, what in node.deliveries("web")] == ["start", "TERM", "exit"]


@on_node({"main": SLOW})
async def test_it_kills_what_was_deleted_meanwhile(node):
    await node.started("web")
    await node.stop()
    await node.delete("web", grace=0)
    node.boot()
    await node.until(lambda: node.runtime.running() == [], 10)


@on_node({"main": ContainerScript(), "before": ContainerScript(lives=1)})
async def test_after_a_power_cut_pods_begin_from_the_beginning(node):
    await node.started("web", initContainers=[{"name": "before"}])
    await node.clock.sleep(5)
    node.runtime.pull_power()
    await node.stop()
    await node.clock.sleep(60)
    node.boot("boot-2")
    await node.until(lambda: node.container("web")["restartCount"] == 1, 30)
    await node.until(lambda: node.ready("web"), 10)
    last = node.container("web")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (255, "Unknown")
    assert node.container("web", "before", "initContainerStatuses")["restartCount"] == 1
    await node.clock.sleep(1)
    assert "SandboxChanged" in node.reasons("web")


@on_node()
async def test_after_a_power_cut_a_pod_is_not_ready_before_it_runs_again(node):
    """Or it would get traffic meanwhile."""
    await node.started("web")
    node.runtime.pull_power()
    await node.stop()
    node.boot("boot-2")
    await node.clock.sleep(0.5)
    assert node.container("web")["restartCount"] == 0
    assert not node.ready("web")


@on_node({"main": ContainerScript(takes=2)})
async def test_after_a_power_cut_a_pod_that_is_never_restarted_has_failed(node):
    await node.started("job", restartPolicy="Never")
    node.runtime.pull_power()
    await node.stop()
    node.boot("boot-2")
    await node.until(lambda: node.phase("job") != "Running", 30)
    assert node.phase("job") == "Failed"
    await node.clock.sleep(30)
    assert [what for _, what in node.deliveries("job")].count("start") == 1
    assert node.phase("job") == "Failed"


@on_node({"main": ContainerScript(takes=2)})
async def test_one_that_is_restarted_on_failure_has_not_succeeded_meanwhile(node):
    await node.started("job", restartPolicy="OnFailure")
    node.runtime.pull_power()
    await node.stop()
    node.boot("boot-2")
    await node.until(lambda: node.container("job")["restartCount"] == 1, 30)
    assert node.phase("job") == "Running"


@on_node({"main": ContainerScript(lives=5)})
async def test_a_finished_pod_stays_finished(node):
    await node.create("job", restartPolicy="Never")
    await node.until(lambda: node.phase("job") == "Succeeded", 30)
    before = node.status("job")
    await node.stop()
    node.boot()
    await node.clock.sleep(30)
    assert node.status("job") == before
    assert node.runtime.running() == []
    await node.delete("job")
    await node.until(lambda: node.pod("job") is None, 5)


@on_node()
async def test_one_that_has_failed_is_not_restarted_either(node):
    """Its phase counts, whatever its restartPolicy says."""
    await node.started("web")
    await node.stop()
    node.runtime.pull_power()
    await node.client.patch(PODS, "web", {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    node.boot("boot-2")
    await node.clock.sleep(600)
    assert node.runtime.running() == []
    assert node.phase("web") == "Failed"
