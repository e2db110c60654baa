"""Pods that the lab's kubelet cannot start, must not, or not yet."""

from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import CONFIG_MAPS
from lastcall_lab.fakes.actor_runtime import ContainerScript


@on_node({"main": ContainerScript(broken="image: not here")})
async def test_what_the_node_cannot_do_is_told_and_tried_again(node):
    """Were the pod to fail, its ReplicaSet would make others for ever."""
    await node.create("web")
    await node.clock.sleep(60)
    waiting = node.container("web")["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerError"
    assert "image: not here" in waiting["message"]
    assert ("Failed", f"Error: {waiting['message']}") in node.events("web")
    assert node.phase("web") == "Pending"
    await node.delete("web")
    await node.until(lambda: node.pod("web") is None, 10)


@on_node()
async def test_what_no_node_of_the_lab_can_do_is_told_field_by_field(node):
    one = {
        "name": "main",
        "livenessProbe": {"grpc": {"port": 80}},
        "volumeMounts": [{"name": "far", "mountPath": "/far", "subPathExpr": "$(POD_NAME)"}],
    }
    await node.create("web", one, volumes=[{"name": "far", "nfs": {"server": "s", "path": "/"}}])
    await node.clock.sleep(2)
    waiting = node.container("web")["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerError"
    for field in ("spec.volumes[0].nfs", "spec.containers[0].livenessProbe", "volumeMounts[0].subPathExpr"):
        assert field in waiting["message"]


@on_node()
async def test_a_pod_waits_for_its_config_map(node):
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]
    await node.create("web", {"name": "main", "env": env})
    await node.clock.sleep(2)
    waiting = node.container("web")["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "settings" not found'}
    assert ("Failed", 'Error: configmap "settings" not found') in node.events("web")
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"a": "1"}}, namespace="default")
    await node.until(lambda: node.ready("web"), 15)


@on_node()
async def test_a_volume_that_cannot_be_made_is_told(node):
    await node.create("web", volumes=[{"name": "conf", "configMap": {"name": "settings"}}])
    await node.clock.sleep(2)
    assert node.container("web")["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert ("FailedMount", 'MountVolume.SetUp failed for volume "conf" : configmap "settings" not found') in (
        node.events("web")
    )


@on_node()
async def test_a_runtime_that_is_away_is_waited_for(node):
    node.runtime.away = True
    await node.create("web")
    await node.clock.sleep(20)
    assert node.phase("web") == "Pending"
    node.runtime.away = False
    await node.until(lambda: node.ready("web"), 15)


@on_node()
async def test_a_node_that_goes_down_refuses_pods(node):
    node.kubelet.going_down = True
    await node.create("web")
    await node.until(lambda: node.phase("web") == "Failed", 10)
    status = node.status("web")
    assert status["reason"] == "NodeShutdown"
    assert status["message"] == "Pod was rejected: Pod was rejected as the node is shutting down."
    assert "containerStatuses" not in status
    await node.clock.sleep(1)
    assert ("NodeShutdown", "Pod was rejected as the node is shutting down.") in node.events("web")
    await node.delete("web")
    await node.until(lambda: node.pod("web") is None, 5)


@on_node({"main": ContainerScript(hook_ok=False)})
async def test_a_post_start_hook_that_fails_ends_the_container(node):
    hook = {"postStart": {"exec": {"command": ["no"]}}}
    await node.create("web", {"name": "main", "lifecycle": hook})
    await node.until(lambda: (node.container("web") or {"restartCount": 0})["restartCount"] == 1, 60)
    assert "FailedPostStartHook" in node.reasons("web")
