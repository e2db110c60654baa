"""Probes on the lab's kubelet: what they make ready, restart and hold back."""

from support.lab.virtual_node import on_node

from lastcall_lab.fakes.actor_runtime import ContainerScript

FOR_EVER = float("inf")
HTTP = {"httpGet": {"port": 80}}


@on_node({"main": ContainerScript(ready_after=12)})
async def test_readiness_makes_a_pod_ready(node):
    await node.started("web", {"name": "main", "readinessProbe": {**HTTP, "periodSeconds": 5}})
    await node.clock.sleep(8)
    assert not node.ready("web")
    assert not node.container("web")["ready"]
    assert node.container("web")["started"]
    await node.until(lambda: node.ready("web"), 20)
    unhealthy = [message for reason, message in node.events("web") if reason == "Unhealthy"]
    assert len(unhealthy) == 3
    assert set(unhealthy) == {"Readiness probe failed: HTTP probe failed with statuscode: 503"}


@on_node({"main": ContainerScript(healthy_for=30)})
async def test_three_failures_make_it_unready(node):
    await node.started("web", {"name": "main", "readinessProbe": {**HTTP, "periodSeconds": 10}})
    await node.until(lambda: node.ready("web"), 5)
    await node.clock.sleep(45)
    assert node.ready("web")
    await node.until(lambda: not node.ready("web"), 20)
    assert node.container("web")["restartCount"] == 0


@on_node({"main": [ContainerScript(healthy_for=30, after_term=2, code=3), ContainerScript()]})
async def test_liveness_restarts_a_container(node):
    probe = {**HTTP, "periodSeconds": 5, "failureThreshold": 2}
    await node.started("web", {"name": "main", "livenessProbe": probe})
    await node.until(lambda: node.container("web")["restartCount"] == 1, 120)
    assert node.container("web")["lastState"]["terminated"]["exitCode"] == 3
    assert ("Killing", "Container main failed liveness probe, will be restarted") in node.events("web")
    told = node.deliveries("web")
    assert [what for _, what in told] == ["start", "TERM", "exit", "start"]
    assert 34 <= told[1][0] - told[0][0] <= 36


@on_node({"main": ContainerScript(healthy_for=10)})
async def test_a_pod_that_never_restarts_fails_then(node):
    probe = {**HTTP, "periodSeconds": 5, "failureThreshold": 1}
    await node.started("web", {"name": "main", "livenessProbe": probe}, restartPolicy="Never")
    await node.until(lambda: node.phase("web") in ("Succeeded", "Failed"), 60)


@on_node({"main": ContainerScript(ready_after=50)})
async def test_startup_holds_the_others_back(node):
    one = {
        "name": "main",
        "startupProbe": {**HTTP, "periodSeconds": 10, "failureThreshold": 30},
        "livenessProbe": {**HTTP, "periodSeconds": 1, "failureThreshold": 1},
    }
    await node.started("web", one)
    await node.clock.sleep(40)
    assert not node.container("web")["started"]
    assert not node.ready("web")
    await node.until(lambda: node.ready("web"), 30)
    await node.clock.sleep(100)
    assert node.container("web")["restartCount"] == 0


@on_node({"main": ContainerScript(ready_after=FOR_EVER)})
async def test_a_start_that_takes_too_long_is_another_start(node):
    one = {"name": "main", "startupProbe": {**HTTP, "periodSeconds": 1, "failureThreshold": 5}}
    await node.started("web", one)
    await node.until(lambda: node.container("web")["restartCount"] == 1, 60)
    assert ("Killing", "Container main failed startup probe, will be restarted") in node.events("web")


@on_node({"main": ContainerScript(after_term=50, healthy_for=30)})
async def test_readiness_goes_on_while_a_pod_ends(node):
    probe = {**HTTP, "periodSeconds": 2, "failureThreshold": 1}
    await node.started(
        "web", {"name": "main", "readinessProbe": probe, "livenessProbe": probe}, terminationGracePeriodSeconds=60
    )
    await node.clock.sleep(20)
    await node.delete("web")
    await node.clock.sleep(5)
    assert node.ready("web")
    await node.clock.sleep(10)
    assert not node.ready("web")
    await node.until(lambda: node.pod("web") is None)
    assert [what for _, what in node.deliveries("web")] == ["start", "TERM", "exit"]
