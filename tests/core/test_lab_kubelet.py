"""The lab's kubelet: its node, and pods that come, run, end and go. In virtual time, on actors."""

import contextlib
import logging

from support.lab_node import on_node

from lastcall.adapters.kube.resources import CONFIG_MAPS, LEASES, NODES, PODS, SERVICES
from lastcall.lab.actors import Behaviour
from lastcall.lab.apiserver.meta import seconds
from lastcall.lab.kubelet.settings import Settings

FOR_EVER = float("inf")


def states(known):
    return {name: sorted(known[name]) for name in ("state", "lastState")}


@contextlib.contextmanager
def complaints():
    """What the node warns of meanwhile."""
    said, handler = [], logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("lastcall.lab.kubelet.node")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


# -- node --------------------------------------------------------------------------------------------------------------


@on_node()
async def test_a_node_registers_and_is_ready(node):
    await node.clock.sleep(1)
    labels = node.node()["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "n1"
    assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
    ready = node.node_condition()
    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
    assert ready["message"] == "kubelet is posting ready status"
    for kind, reason in (
        ("MemoryPressure", "KubeletHasSufficientMemory"),
        ("DiskPressure", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "KubeletHasSufficientPID"),
    ):
        condition = node.node_condition(kind)
        assert (condition["status"], condition["reason"]) == ("False", reason)
    status = node.node()["status"]
    assert {"type": "InternalIP", "address": "127.0.1.1"} in status["addresses"]
    assert status["allocatable"]["pods"] == "110"
    assert status["nodeInfo"]["bootID"] == "boot-1"
    assert {"Starting", "NodeReady", "NodeHasSufficientMemory"} <= set(node.reasons("n1"))


@on_node()
async def test_taints_stay_as_others_have_made_them(node):
    taints = [{"key": "mine", "effect": "NoSchedule"}]
    await node.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await node.clock.sleep(60)
    assert node.node()["spec"]["taints"] == taints


@on_node()
async def test_that_nobody_answers_is_said_once_and_once_more_the_next_time(node):
    await node.clock.sleep(1)
    for _ in range(2):
        with complaints() as said:
            node.line.cut = True
            await node.clock.sleep(400)
        assert sorted(said) == [
            "the lease of node n1 cannot be renewed: the line is cut",
            "the status of node n1 cannot be written: the line is cut",
        ]
        node.line.cut = False
        await node.clock.sleep(60)


@on_node()
async def test_a_node_that_cannot_register_says_it_once(node):
    await node.stop()
    node.line.cut = True
    with complaints() as said:
        node.boot("boot-2")
        await node.clock.sleep(30)
    assert said == ["node n1 cannot be registered: the line is cut"]
    node.line.cut = False
    await node.clock.sleep(5)
    assert node.node()["status"]["nodeInfo"]["bootID"] == "boot-2"


@on_node()
async def test_the_lease_is_renewed_every_ten_seconds(node):
    await node.clock.sleep(1)
    times = set()
    for _ in range(60):
        (lease,) = node.all(LEASES)
        times.add(lease["spec"]["renewTime"])
        await node.clock.sleep(1)
    assert 5 <= len(times) <= 7
    assert lease["metadata"]["namespace"] == "kube-node-lease"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node.node()["metadata"]["uid"]


@on_node()
async def test_an_unchanged_status_is_written_every_five_minutes(node):
    await node.clock.sleep(1)
    beats = set()
    for _ in range(20):
        beats.add(node.node_condition()["lastHeartbeatTime"])
        await node.clock.sleep(60)
    assert 4 <= len(beats) <= 5
    assert node.node_condition()["lastTransitionTime"] == min(beats)


@on_node()
async def test_a_runtime_that_is_away_makes_the_node_unready(node):
    await node.clock.sleep(1)
    node.runtime.away = True
    await node.until(lambda: node.node_condition()["status"] == "False", 30)
    assert node.node_condition()["message"] == "container runtime is down"
    node.runtime.away = False
    await node.until(lambda: node.node_condition()["status"] == "True", 30)
    await node.clock.sleep(1)
    assert [reason for reason in node.reasons("n1") if "Ready" in reason].count("NodeReady") == 2
    assert "NodeNotReady" in node.reasons("n1")


@on_node()
async def test_another_boot_is_told(node):
    await node.stop()
    node.boot("boot-2")
    await node.clock.sleep(2)
    assert node.node()["status"]["nodeInfo"]["bootID"] == "boot-2"
    assert ("Rebooted", "Node n1 has been rebooted, boot id: boot-2") in node.events("n1")


# -- status ------------------------------------------------------------------------------------------------------------


@on_node()
async def test_a_pod_runs(node):
    await node.started("web")
    await node.until(lambda: node.ready("web"))
    status, pod = node.status("web"), node.pod("web")
    assert [one["type"] for one in status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert {one["status"] for one in status["conditions"]} == {"True"}
    assert not any(one.get("reason") for one in status["conditions"])
    assert (status["hostIP"], status["hostIPs"]) == ("127.0.1.1", [{"ip": "127.0.1.1"}])
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["qosClass"] == "BestEffort"
    assert status["observedGeneration"] == pod["metadata"]["generation"]
    main = node.container("web")
    assert states(main) == {"state": ["running"], "lastState": []}
    assert (main["ready"], main["started"], main["restartCount"], main["image"]) == (True, True, 0, "i")
    assert main["containerID"] == f"lastcall://{pod['metadata']['uid']}/main"
    assert status["startTime"] <= main["state"]["running"]["startedAt"]


@on_node()
async def test_what_it_tells_meanwhile(node):
    await node.started("web")
    await node.clock.sleep(1)
    assert node.events("web") == [
        ("Pulled", 'Container image "i" already present on machine and can be accessed by the pod'),
        ("Created", "Container created"),
        ("Started", "Container started"),
    ]


@on_node({"main": Behaviour(takes=5)})
async def test_before_it_runs(node):
    await node.create("web")
    await node.clock.sleep(2)
    assert node.phase("web") == "Pending"
    assert node.container("web")["state"] == {"waiting": {"reason": "ContainerCreating"}}
    conditions = node.conditions("web")
    assert conditions["PodReadyToStartContainers"]["status"] == "True"
    assert conditions["Initialized"]["status"] == "True"
    for kind in ("Ready", "ContainersReady"):
        assert conditions[kind]["reason"] == "ContainersNotReady"
        assert conditions[kind]["message"] == "containers with unready status: [main]"
    await node.until(lambda: node.ready("web"), 10)
    after = node.conditions("web")
    assert after["Initialized"]["lastTransitionTime"] == conditions["Initialized"]["lastTransitionTime"]
    assert after["Ready"]["lastTransitionTime"] > conditions["Ready"]["lastTransitionTime"]


@on_node()
async def test_others_conditions_stay(node):
    await node.started("web")
    said = {"type": "example.com/gate", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    old = node.status("web")["conditions"]
    await node.client.patch(
        PODS, "web", {"status": {"conditions": [*old, said]}}, namespace="default", subresource="status"
    )
    await node.runtime.stop(f"{node.uids['web']}/main", 1)
    await node.until(lambda: node.container("web")["restartCount"] == 1)
    assert node.conditions("web")["example.com/gate"]["status"] == "True"


@on_node()
async def test_readiness_gates(node):
    await node.started("web", readinessGates=[{"conditionType": "example.com/gate"}])
    await node.until(lambda: node.conditions("web")["ContainersReady"]["status"] == "True")
    ready = node.conditions("web")["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert "does not exist" in ready["message"]
    said = {"type": "example.com/gate", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [*node.status("web")["conditions"], said]
    await node.client.patch(
        PODS, "web", {"status": {"conditions": conditions}}, namespace="default", subresource="status"
    )
    await node.until(lambda: node.ready("web"), 10)


# -- init --------------------------------------------------------------------------------------------------------------


@on_node({"one": Behaviour(lives=3), "two": Behaviour(lives=3), "main": Behaviour(code=0)})
async def test_init_containers_run_one_after_the_other(node):
    await node.create("web", initContainers=[{"name": "one"}, {"name": "two"}])
    await node.clock.sleep(1)
    assert node.phase("web") == "Pending"
    initialized = node.conditions("web")["Initialized"]
    assert (initialized["status"], initialized["reason"]) == ("False", "ContainersNotInitialized")
    assert initialized["message"] == "containers with incomplete status: [one two]"
    assert node.container("web")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert "running" in node.container("web", "one", "initContainerStatuses")["state"]
    await node.clock.sleep(3)
    assert node.conditions("web")["Initialized"]["message"] == "containers with incomplete status: [two]"
    await node.until(lambda: node.ready("web"), 10)
    over = node.container("web", "one", "initContainerStatuses")
    assert over["state"]["terminated"]["reason"] == "Completed"
    assert over["ready"]
    uid = node.uids["web"]
    starts = [one.container for one in node.runtime.deliveries if one.uid == uid and one.what == "start"]
    assert starts == ["one", "two", "main"]


@on_node({"one": Behaviour(lives=1, code=2)})
async def test_an_init_container_that_fails_fails_a_pod_that_never_restarts(node):
    await node.create("web", initContainers=[{"name": "one"}], restartPolicy="Never")
    await node.until(lambda: node.phase("web") == "Failed", 10)
    assert node.container("web")["state"] == {"waiting": {"reason": "PodInitializing"}}


@on_node({"one": [Behaviour(lives=1, code=2), Behaviour(lives=1)]})
async def test_else_it_is_tried_again(node):
    await node.create("web", initContainers=[{"name": "one"}])
    await node.until(lambda: node.ready("web"), 10)
    assert node.container("web", "one", "initContainerStatuses")["restartCount"] == 1


@on_node({"side": Behaviour(ready_after=5), "main": Behaviour(lives=20)})
async def test_a_sidecar_runs_before_and_ends_after(node):
    probe = {"httpGet": {"port": 80}, "periodSeconds": 1, "failureThreshold": 60}
    side = {"name": "side", "restartPolicy": "Always", "startupProbe": probe}
    await node.create("job", initContainers=[side], restartPolicy="Never")
    await node.clock.sleep(3)
    assert node.phase("job") == "Pending"
    await node.until(lambda: node.phase("job") == "Succeeded", 60)
    uid = node.uids["job"]
    told = [(one.container, one.what) for one in node.runtime.deliveries if one.uid == uid]
    assert told == [("side", "start"), ("main", "start"), ("main", "exit"), ("side", "TERM"), ("side", "exit")]


# -- restart -----------------------------------------------------------------------------------------------------------


@on_node({"main": Behaviour(lives=1, code=3)})
async def test_pauses_grow_from_ten_seconds_to_five_minutes(node):
    await node.started("web")
    await node.until(lambda: node.container("web")["restartCount"] >= 8, 3000)
    starts = [at for at, what in node.deliveries("web") if what == "start"]
    between = [round(after - before) for before, after in zip(starts, starts[1:], strict=False)]
    assert between[:8] == [1, 11, 21, 41, 81, 161, 301, 301]


@on_node({"main": Behaviour(lives=1, code=3)})
async def test_what_a_pause_looks_like(node):
    await node.started("web")

    def waiting():
        return node.container("web")["state"].get("waiting", {})

    await node.until(lambda: waiting().get("reason") == "CrashLoopBackOff", 30)
    uid = node.uids["web"]
    assert waiting()["message"] == f"back-off 10s restarting failed container=main pod=web_default({uid})"
    assert node.container("web")["lastState"]["terminated"]["exitCode"] == 3
    assert node.container("web")["lastState"]["terminated"]["reason"] == "Error"
    assert node.phase("web") == "Running"
    assert not node.ready("web")
    await node.clock.sleep(1)
    said = f"Back-off restarting failed container main in pod web_default({uid})"
    assert ("BackOff", said) in node.events("web")


@on_node({"main": [Behaviour(lives=1, code=1)] * 4 + [Behaviour(lives=700, code=1), Behaviour()]})
async def test_who_runs_for_ten_minutes_begins_with_the_first_pause(node):
    await node.started("web")
    await node.until(lambda: node.container("web")["restartCount"] == 5, 2000)
    starts = [at for at, what in node.deliveries("web") if what == "start"]
    assert round(starts[5] - starts[4]) == 700


@on_node({"main": Behaviour(lives=5, code=0)})
async def test_on_failure_success_is_the_end(node):
    await node.create("job", restartPolicy="OnFailure")
    await node.until(lambda: node.phase("job") == "Succeeded", 20)
    status = node.status("job")
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert node.conditions("job")["Ready"]["reason"] == "PodCompleted"
    assert node.conditions("job")["Initialized"]["status"] == "True"
    assert node.conditions("job")["PodReadyToStartContainers"]["status"] == "False"


@on_node({"main": [Behaviour(lives=5, code=1), Behaviour(lives=5, code=0)]})
async def test_on_failure_failure_is_not(node):
    await node.create("job", restartPolicy="OnFailure")
    await node.until(lambda: node.phase("job") == "Succeeded", 20)
    assert node.container("job")["restartCount"] == 1
    assert node.container("job")["lastState"]["terminated"]["exitCode"] == 1


@on_node({"one": Behaviour(lives=5, code=1), "two": Behaviour(lives=50)})
async def test_never_is_over_when_all_have_ended(node):
    await node.create("job", {"name": "one"}, {"name": "two"}, restartPolicy="Never")
    await node.clock.sleep(20)
    assert node.phase("job") == "Running"
    await node.until(lambda: node.phase("job") == "Failed", 60)
    assert "reason" not in node.status("job")


@on_node(settings=Settings(backoff_first=1, backoff_longest=4), behave={"main": Behaviour(lives=0, code=1)})
async def test_the_constants_can_be_others(node):
    await node.started("web")
    await node.until(lambda: node.container("web")["restartCount"] >= 5, 60)
    starts = [at for at, what in node.deliveries("web") if what == "start"]
    assert [round(b - a) for a, b in zip(starts, starts[1:], strict=False)][:5] == [0, 1, 2, 4, 4]


@on_node({"main": Behaviour(lives=FOR_EVER)})
async def test_active_deadline(node):
    await node.started("job", activeDeadlineSeconds=20, restartPolicy="Never")
    await node.until(lambda: node.phase("job") == "Failed", 60)
    assert node.status("job")["reason"] == "DeadlineExceeded"
    assert seconds(node.container("job")["state"]["terminated"]["finishedAt"]) - seconds(
        node.status("job")["startTime"]
    ) in (19, 20, 21)


# -- start -------------------------------------------------------------------------------------------------------------


@on_node({"main": Behaviour(broken="image: not here")})
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


@on_node({"main": Behaviour(hook_ok=False)})
async def test_a_post_start_hook_that_fails_ends_the_container(node):
    hook = {"postStart": {"exec": {"command": ["no"]}}}
    await node.create("web", {"name": "main", "lifecycle": hook})
    await node.until(lambda: (node.container("web") or {"restartCount": 0})["restartCount"] == 1, 60)
    assert "FailedPostStartHook" in node.reasons("web")


# -- services ----------------------------------------------------------------------------------------------------------


@on_node()
async def test_services_are_told_by_this_nodes_addresses(node):
    service = {"metadata": {"name": "shop-api"}, "spec": {"clusterIP": "10.96.1.2", "ports": [{"port": 80}]}}
    await node.client.create(SERVICES, service, namespace="default")
    seen = {}
    launch = node.runtime.launch

    async def spy(pod, container, **options):
        seen.update({one.name: one.value for one in container.env})
        return await launch(pod, container, **options)

    node.runtime.launch = spy
    await node.clock.sleep(1)
    env = [
        {"name": "URL", "value": "http://$(SHOP_API_SERVICE_HOST):$(SHOP_API_SERVICE_PORT)/$$(X)/$(UNKNOWN)"},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    await node.started("web", {"name": "main", "env": env})
    assert seen["URL"] == "http://127.128.1.2:20080/$(X)/$(UNKNOWN)"
    assert seen["SHOP_API_PORT_80_TCP_ADDR"] == "127.128.1.2"
    assert seen["KUBERNETES_SERVICE_PORT_HTTPS"] == "20443"
    assert (seen["ME"], seen["IP"], seen["CPU"]) == ("web", node.status("web")["podIP"], "4")
    assert (seen["POD_NAME"], seen["NODE_NAME"]) == ("web", "n1")
