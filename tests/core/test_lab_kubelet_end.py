"""How pods end on the lab's kubelet: deletion, probes, kubelets that begin anew, an API server that is away."""

import asyncio

from support.lab_node import on_node

from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.kube.transport import Answer
from lastcall.errors import NotFound
from lastcall.lab.actors import Behaviour
from lastcall.lab.kubelet.ending import Order

FOR_EVER = float("inf")
STUBBORN = Behaviour(after_term=FOR_EVER)
SLOW = Behaviour(after_term=10)
HTTP = {"httpGet": {"port": 80}}


def since(told):
    """Seconds after the first SIGTERM or hook."""
    begin = next(at for at, what in told if what in ("TERM", "hook"))
    return [(round(at - begin), what) for at, what in told if what != "start"]


async def deleted(node, name="web", **options):
    await node.delete(name, **options)
    await node.until(lambda: node.pod(name) is None)


# -- deletion ----------------------------------------------------------------------------------------------------------


@on_node({"main": Behaviour(after_term=3)})
async def test_a_deleted_pod_ends_by_itself(node):
    await node.started("web")
    await deleted(node)
    assert since(node.deliveries("web")) == [(0, "TERM"), (3, "exit")]
    assert ("Killing", "Stopping container main") in node.events("web")


@on_node({"main": STUBBORN})
async def test_or_is_killed_when_its_grace_is_over(node):
    await node.started("web", terminationGracePeriodSeconds=20)
    await deleted(node)
    assert since(node.deliveries("web")) == [(0, "TERM"), (20, "KILL"), (20, "exit")]


@on_node({"main": STUBBORN})
async def test_the_deletion_may_bring_its_own_grace(node):
    await node.started("web", terminationGracePeriodSeconds=20)
    await deleted(node, grace=5)
    assert since(node.deliveries("web")) == [(0, "TERM"), (5, "KILL"), (5, "exit")]


@on_node({"main": STUBBORN})
async def test_a_grace_can_be_shortened(node):
    await node.started("web", terminationGracePeriodSeconds=600)
    await node.delete("web")
    await node.clock.sleep(10)
    await deleted(node, grace=15)
    told = since(node.deliveries("web"))
    assert [what for _, what in told] == ["TERM", "KILL", "exit"]
    assert told[1][0] in (15, 25), "counted from the first deletion or from the second, as the server has it"


@on_node({"main": STUBBORN})
async def test_a_grace_that_was_shortened_does_not_begin_anew_with_a_change(node):
    await node.started("web", terminationGracePeriodSeconds=600)
    await node.delete("web")
    await node.clock.sleep(1)
    await node.delete("web", grace=20)
    await node.clock.sleep(10)
    await node.client.patch(PODS, "web", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    await node.until(lambda: node.pod("web") is None)
    (_, term), (at, kill), _ = since(node.deliveries("web"))
    assert (term, kill) == ("TERM", "KILL")
    assert 19 <= at <= 22


@on_node({"main": STUBBORN})
async def test_the_shorter_of_two_orders_counts(node):
    await node.started("web")
    worker = node.kubelet.pods.workers[node.remember("web")]
    worker.end(Order(5.0))
    worker.end(Order(500.0))
    await node.until(lambda: node.phase("web") == "Failed", 10)
    assert since(node.deliveries("web")) == [(0, "TERM"), (5, "KILL"), (5, "exit")]


@on_node({"main": Behaviour(hook=100, after_term=FOR_EVER)})
async def test_also_while_a_hook_runs(node):
    await node.started("web", {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}})
    await node.delete("web", grace=600)
    await node.clock.sleep(10)
    await deleted(node, grace=12)
    told = [what for _, what in since(node.deliveries("web"))]
    assert told == ["hook", "hook over", "TERM", "KILL", "exit"], "the hook runs once"


@on_node({"main": Behaviour(hook=4)})
async def test_the_hook_comes_first(node):
    await node.started("web", {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}})
    await deleted(node)
    assert since(node.deliveries("web")) == [(0, "hook"), (4, "hook over"), (4, "TERM"), (4, "exit")]


@on_node({"main": Behaviour(after_term=5, code=0)})
async def test_the_last_status_is_written_before_the_pod_goes(node):
    await node.started("web", metadata={"finalizers": ["example.com/keep"]})
    await node.delete("web")
    await node.until(lambda: node.phase("web") == "Succeeded", 10)
    assert node.container("web")["state"]["terminated"]["exitCode"] == 0
    assert node.conditions("web")["Ready"]["status"] == "False"
    await node.clock.sleep(60)
    assert node.pod("web")["metadata"]["deletionGracePeriodSeconds"] == 0, "the finalizer keeps it"
    await node.client.patch(PODS, "web", {"metadata": {"finalizers": None}}, namespace="default")
    await node.until(lambda: node.pod("web") is None, 5)
    await node.clock.sleep(1)
    assert node.kubelet.pods.workers == {}


@on_node({"main": Behaviour(after_term=5, code=0)})
async def test_also_if_nothing_keeps_it(node):
    seen = []
    node.server.store.on_change = lambda change: seen.append(change.new.object())
    await node.started("web")
    await deleted(node)
    last = [one for one in seen if one["metadata"]["name"] == "web" and "containerStatuses" in one.get("status", {})][
        -1
    ]
    assert (last["status"]["phase"], last["status"]["containerStatuses"][0]["ready"]) == ("Succeeded", False)


@on_node({"main": Behaviour(code=143)})
async def test_a_pod_that_does_not_end_well_has_failed(node):
    await node.started("web", metadata={"finalizers": ["example.com/keep"]})
    await node.delete("web")
    await node.until(lambda: node.phase("web") == "Failed", 10)


@on_node({"main": STUBBORN})
async def test_what_is_deleted_by_force_is_killed(node):
    await node.started("web")
    uid = node.remember("web")
    await node.delete("web", grace=0)
    assert node.pod("web") is None
    await node.until(lambda: uid not in node.kubelet.pods.workers, 10)
    told = since(node.deliveries("web"))
    assert [what for _, what in told] == ["TERM", "KILL", "exit"]
    assert told[1][0] <= 2


@on_node({"main": SLOW})
async def test_the_name_can_be_used_again_at_once(node):
    await node.started("web")
    await node.delete("web", grace=0)
    await node.started("web")
    await node.clock.sleep(60)
    assert node.phase("web") == "Running"
    assert len(node.runtime.running()) == 1


@on_node({"main": Behaviour(takes=60)})
async def test_a_pod_that_has_not_started_yet_goes_at_once(node):
    await node.create("web")
    await node.clock.sleep(2)
    await node.delete("web")
    await node.until(lambda: node.pod("web") is None, 5)


@on_node({"main": STUBBORN})
async def test_a_deleted_pod_is_not_restarted(node):
    await node.started("web", terminationGracePeriodSeconds=600)
    await node.delete("web")
    await node.clock.sleep(1)
    node.runtime.exit(f"{node.uids['web']}/main", 1)
    await node.until(lambda: node.pod("web") is None, 5)
    assert [what for _, what in node.deliveries("web")] == ["start", "TERM", "exit"]


@on_node({"main": SLOW})
async def test_a_runtime_that_is_away_is_waited_for(node):
    await node.started("web")
    node.runtime.away = True
    await node.delete("web")
    await node.clock.sleep(20)
    assert node.pod("web")
    node.runtime.away = False
    await node.until(lambda: node.pod("web") is None, 60)


# -- probes ------------------------------------------------------------------------------------------------------------


@on_node({"main": Behaviour(ready_after=12)})
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


@on_node({"main": Behaviour(healthy_for=30)})
async def test_three_failures_make_it_unready(node):
    await node.started("web", {"name": "main", "readinessProbe": {**HTTP, "periodSeconds": 10}})
    await node.until(lambda: node.ready("web"), 5)
    await node.clock.sleep(45)
    assert node.ready("web")
    await node.until(lambda: not node.ready("web"), 20)
    assert node.container("web")["restartCount"] == 0


@on_node({"main": [Behaviour(healthy_for=30, after_term=2, code=3), Behaviour()]})
async def test_liveness_restarts_a_container(node):
    probe = {**HTTP, "periodSeconds": 5, "failureThreshold": 2}
    await node.started("web", {"name": "main", "livenessProbe": probe})
    await node.until(lambda: node.container("web")["restartCount"] == 1, 120)
    assert node.container("web")["lastState"]["terminated"]["exitCode"] == 3
    assert ("Killing", "Container main failed liveness probe, will be restarted") in node.events("web")
    told = node.deliveries("web")
    assert [what for _, what in told] == ["start", "TERM", "exit", "start"]
    assert 34 <= told[1][0] - told[0][0] <= 36


@on_node({"main": Behaviour(healthy_for=10)})
async def test_a_pod_that_never_restarts_fails_then(node):
    probe = {**HTTP, "periodSeconds": 5, "failureThreshold": 1}
    await node.started("web", {"name": "main", "livenessProbe": probe}, restartPolicy="Never")
    await node.until(lambda: node.phase("web") in ("Succeeded", "Failed"), 60)


@on_node({"main": Behaviour(ready_after=50)})
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


@on_node({"main": Behaviour(ready_after=FOR_EVER)})
async def test_a_start_that_takes_too_long_is_another_start(node):
    one = {"name": "main", "startupProbe": {**HTTP, "periodSeconds": 1, "failureThreshold": 5}}
    await node.started("web", one)
    await node.until(lambda: node.container("web")["restartCount"] == 1, 60)
    assert ("Killing", "Container main failed startup probe, will be restarted") in node.events("web")


@on_node({"main": Behaviour(after_term=50, healthy_for=30)})
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


# -- another kubelet ---------------------------------------------------------------------------------------------------


@on_node({"main": Behaviour()})
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
    await deleted(node)


@on_node({"main": Behaviour(lives=20, code=3)})
async def test_it_hears_of_what_has_ended_meanwhile(node):
    await node.started("web", restartPolicy="Never")
    await node.stop()
    await node.clock.sleep(30)
    node.boot()
    await node.until(lambda: node.phase("web") == "Failed", 10)
    assert node.container("web")["state"]["terminated"]["exitCode"] == 3


@on_node({"main": Behaviour(lives=20, code=3)})
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


@on_node({"main": Behaviour(), "before": Behaviour(lives=1)})
async def test_after_a_power_cut_pods_begin_from_the_beginning(node):
    await node.started("web", initContainers=[{"name": "before"}])
    await node.clock.sleep(5)
    node.runtime.pull()
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


@on_node({"main": Behaviour(takes=2)})
async def test_after_a_power_cut_a_pod_that_is_never_restarted_has_failed(node):
    await node.started("job", restartPolicy="Never")
    node.runtime.pull()
    await node.stop()
    node.boot("boot-2")
    await node.until(lambda: node.phase("job") != "Running", 30)
    assert node.phase("job") == "Failed"
    await node.clock.sleep(30)
    assert [what for _, what in node.deliveries("job")].count("start") == 1
    assert node.phase("job") == "Failed"


@on_node({"main": Behaviour(takes=2)})
async def test_one_that_is_restarted_on_failure_has_not_succeeded_meanwhile(node):
    await node.started("job", restartPolicy="OnFailure")
    node.runtime.pull()
    await node.stop()
    node.boot("boot-2")
    await node.until(lambda: node.container("job")["restartCount"] == 1, 30)
    assert node.phase("job") == "Running"


@on_node({"main": Behaviour(lives=5)})
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
    node.runtime.pull()
    await node.client.patch(PODS, "web", {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    node.boot("boot-2")
    await node.clock.sleep(600)
    assert node.runtime.running() == []
    assert node.phase("web") == "Failed"


# -- an API server that is away ----------------------------------------------------------------------------------------


@on_node({"main": [Behaviour(lives=30, code=3), Behaviour()]})
async def test_pods_go_on_without_an_api_server(node):
    await node.started("web")
    node.line.cut = True
    await node.clock.sleep(120)
    assert node.container("web")["restartCount"] == 0
    assert [what for _, what in node.deliveries("web")] == ["start", "exit", "start"]
    node.line.cut = False
    await node.until(lambda: node.container("web")["restartCount"] == 1, 120)
    assert node.container("web")["lastState"]["terminated"]["exitCode"] == 3
    await node.until(lambda: node.ready("web"), 10)


@on_node({"main": Behaviour(after_term=10)})
async def test_a_deletion_is_finished_when_it_is_back(node):
    await node.started("web")
    await node.delete("web")
    await node.clock.sleep(1)
    node.line.cut = True
    await node.clock.sleep(60)
    assert node.runtime.running() == []
    assert node.pod("web")
    node.line.cut = False
    await node.until(lambda: node.pod("web") is None, 120)


@on_node({"main": SLOW})
async def test_another_pod_of_that_name_is_left_alone(node):
    await node.started("web")
    await node.delete("web")
    await node.clock.sleep(1)
    node.line.cut = True
    await node.client.delete(PODS, "web", namespace="default", grace=0)
    await node.create("web")
    other = node.remember("web")
    await node.clock.sleep(60)
    node.line.cut = False
    await node.until(lambda: node.phase("web") == "Running", 120)
    assert node.uids["web"] == other
    assert not node.pod("web")["metadata"].get("deletionTimestamp")


@on_node()
async def test_what_was_deleted_meanwhile_is_ended(node):
    await node.started("web")
    node.line.cut = True
    await node.clock.sleep(10)
    await node.delete("web", grace=0)
    await node.clock.sleep(10)
    assert node.runtime.running()
    node.line.cut = False
    await node.until(lambda: not node.runtime.running(), 120)


@on_node()
async def test_the_client_has_what_a_kubelet_may_do(node):
    """The node's own identity is enough for all of this: see the audit."""
    await node.started("web")
    await node.delete("web")
    await node.until(lambda: node.pod("web") is None)
    try:
        await node.kubelet.means.client.get(PODS, "web", namespace="default")
    except NotFound:
        return
    raise AssertionError("it is gone")


# -- a server that answers otherwise -----------------------------------------------------------------------------------


class Refusing:
    """A transport whose first writes of one kind are answered with 409 Conflict."""

    def __init__(self, transport, method, path, times):
        self.transport, self.method, self.path, self.times = transport, method, path, times

    async def request(self, method, target, *arguments, **options):
        if method == self.method and target.split("?")[0].endswith(self.path) and self.times:
            self.times -= 1
            return Answer(409, {}, b'{"kind": "Status", "reason": "Conflict", "message": "try again", "code": 409}')
        return await self.transport.request(method, target, *arguments, **options)

    def close(self):
        self.transport.close()


@on_node({"main": Behaviour(lives=5)})
async def test_a_status_that_met_a_conflict_is_written_later(node):
    await node.started("web", restartPolicy="Never")
    node.line.transport = Refusing(node.line.transport, "PATCH", "/pods/web/status", times=3)
    await node.until(lambda: node.pod("web")["status"]["phase"] == "Succeeded")
    assert node.line.transport.times == 0


@on_node({"main": Behaviour(after_term=1)})
async def test_a_deletion_that_met_a_conflict_is_asked_for_again(node):
    await node.started("web")
    node.line.transport = Refusing(node.line.transport, "DELETE", "/pods/web", times=3)
    await deleted(node)
    assert node.line.transport.times == 0


class Late:
    """A transport whose watches bring nothing while they are held up."""

    def __init__(self, transport):
        self.transport, self.held = transport, False

    async def request(self, *arguments, **options):
        answer = await self.transport.request(*arguments, **options)
        if not isinstance(answer.body, bytes):
            return Answer(answer.status, answer.headers, LateChunks(answer.body, self))
        return answer

    def close(self):
        self.transport.close()


class LateChunks:
    def __init__(self, chunks, way):
        self.chunks, self.way = chunks, way

    def __aiter__(self):
        return self

    async def __anext__(self):
        chunk = await anext(self.chunks)
        while self.way.held:
            await asyncio.sleep(0.5)
        return chunk

    async def aclose(self):
        await self.chunks.aclose()


@on_node({"main": Behaviour(ready_after=10, after_term=1)})
async def test_a_deletion_that_the_answer_to_a_status_has_told_first_is_heeded(node):
    """The watch is late, and what it brings then is known already."""
    way = node.line.transport = Late(node.line.transport)
    await node.stop()
    node.boot()
    await node.started("web", {"name": "main", "readinessProbe": {**HTTP, "periodSeconds": 1}})
    way.held = True
    await node.delete("web")
    await node.until(lambda: node.ready("web"), 30)
    assert node.pod("web")["metadata"]["deletionTimestamp"]
    way.held = False
    await node.until(lambda: node.pod("web") is None, 30)
