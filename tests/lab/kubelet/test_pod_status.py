"""What the lab's kubelet says of a pod that starts: its status, conditions, init containers and environment."""

from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import PODS, SERVICES
from lastcall_lab.fakes.actor_runtime import ContainerScript


def states(known):
    return {name: sorted(known[name]) for name in ("state", "lastState")}


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


@on_node({"main": ContainerScript(takes=5)})
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
    await node.runtime.stop_container(f"{node.uids['web']}/main", 1)
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


@on_node({"one": ContainerScript(lives=3), "two": ContainerScript(lives=3), "main": ContainerScript(code=0)})
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


@on_node({"one": ContainerScript(lives=1, code=2)})
async def test_an_init_container_that_fails_fails_a_pod_that_never_restarts(node):
    await node.create("web", initContainers=[{"name": "one"}], restartPolicy="Never")
    await node.until(lambda: node.phase("web") == "Failed", 10)
    assert node.container("web")["state"] == {"waiting": {"reason": "PodInitializing"}}


@on_node({"one": [ContainerScript(lives=1, code=2), ContainerScript(lives=1)]})
async def test_else_it_is_tried_again(node):
    await node.create("web", initContainers=[{"name": "one"}])
    await node.until(lambda: node.ready("web"), 10)
    assert node.container("web", "one", "initContainerStatuses")["restartCount"] == 1


@on_node({"side": ContainerScript(ready_after=5), "main": ContainerScript(lives=20)})
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


# -- services ----------------------------------------------------------------------------------------------------------


@on_node()
async def test_services_are_told_by_this_nodes_addresses(node):
    service = {"metadata": {"name": "shop-api"}, "spec": {"clusterIP": "10.96.1.2", "ports": [{"port": 80}]}}
    await node.client.create(SERVICES, service, namespace="default")
    seen = {}
    launch = node.runtime.launch_container

    async def spy(pod, container, **options):
        seen.update({one.name: one.value for one in container.env})
        return await launch(pod, container, **options)

    node.runtime.launch_container = spy
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


# -- services and the server that is away ------------------------------------------------------------------------------


class Spy:
    """What the containers of a node are started with, by pod: all of them in turn, and the last of each."""

    def __init__(self, node):
        self.starts, self._launch = [], node.runtime.launch_container
        node.runtime.launch_container = self.launch

    async def launch(self, pod, container, **options):
        self.starts.append((pod.metadata.name, {one.name: one.value for one in container.env}))
        return await self._launch(pod, container, **options)

    @property
    def seen(self):
        return dict(self.starts)


class SlowServices:
    """A transport on which a list of Services takes a minute."""

    def __init__(self, transport, clock):
        self.transport, self.clock, self.asked = transport, clock, []

    async def request(self, method, target, *arguments, **options):
        if "/services" in target:
            self.asked.append(target)
            await self.clock.sleep(60)
        return await self.transport.request(method, target, *arguments, **options)

    def close(self):
        self.transport.close()


@on_node()
async def test_a_container_that_is_told_of_services_waits_until_they_are_known(node):
    """``kubelet_pods.go: makeEnvironmentVariables`` refuses to start it before they have been read once."""
    await node.stop()
    node.line.transport = slow = SlowServices(node.line.transport, node.clock)
    node.boot()
    spy = Spy(node)
    await node.create("web")
    await node.create("lone", enableServiceLinks=False)
    await node.clock.sleep(50)
    assert spy.seen == {}
    await node.until(lambda: node.ready("web") and node.ready("lone"), 100)
    assert all("KUBERNETES_SERVICE_HOST" in variables for variables in spy.seen.values())
    assert sum(target.split("?")[0].endswith("/services") and "watch" not in target for target in slow.asked) == 1


@on_node()
async def test_who_wants_no_services_does_not_hear_of_them(node):
    await node.stop()
    asked = []
    request = node.line.transport.request

    def spied(method, target, *arguments, **options):
        asked.append(target)
        return request(method, target, *arguments, **options)

    node.line.transport.request = spied
    node.boot()
    await node.started("web", enableServiceLinks=False)
    about = [target for target in asked if "/services" in target]
    assert [target.split("?")[0] for target in about] == ["/api/v1/namespaces/default/services/kubernetes"]


@on_node({"main": [ContainerScript(lives=30), ContainerScript(lives=60), ContainerScript()]})
async def test_a_master_service_that_comes_late_is_told_to_who_wants_no_others(node):
    """Its absence is no answer for ever: the kubelet's own cache hears of it, whenever it comes."""
    await node.stop()
    service = await node.client.get(SERVICES, "kubernetes", namespace="default")
    await node.client.delete(SERVICES, "kubernetes", namespace="default")
    node.boot()
    spy = Spy(node)
    await node.started("lone", enableServiceLinks=False)
    node.line.cut = True
    await node.until(lambda: len(spy.starts) == 2, 60)
    assert not any("KUBERNETES_SERVICE_HOST" in variables for _, variables in spy.starts)
    node.line.cut = False
    spec = {key: service["spec"][key] for key in ("clusterIP", "ports")}
    await node.client.create(SERVICES, {"metadata": {"name": "kubernetes"}, "spec": spec}, namespace="default")
    await node.until(lambda: len(spy.starts) == 3, 120)
    assert "KUBERNETES_SERVICE_HOST" in spy.seen["lone"]


@on_node({"main": [ContainerScript(lives=30), ContainerScript()]})
async def test_services_are_known_while_the_server_is_away(node):
    service = {"metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}}
    spy = Spy(node)
    await node.started("web")
    await node.client.create(SERVICES, service, namespace="default")
    await node.clock.sleep(1)
    assert "SHOP_SERVICE_HOST" not in spy.seen["web"]
    node.line.cut = True
    await node.clock.sleep(60)
    assert "SHOP_SERVICE_HOST" in spy.seen["web"]
