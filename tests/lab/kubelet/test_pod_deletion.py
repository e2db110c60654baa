"""How deleted pods end on the lab's kubelet: grace, hooks, force, and the last status."""

from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import PODS
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.kubelet.pod.pod_terminator import TerminationOrder

FOR_EVER = float("inf")
STUBBORN = ContainerScript(after_term=FOR_EVER)
SLOW = ContainerScript(after_term=10)


def since(told):
    """Seconds after the first SIGTERM or hook."""
    begin = next(at for at, what in told if what in ("TERM", "hook"))
    return [(round(at - begin), what) for at, what in told if what != "start"]


@on_node({"main": ContainerScript(after_term=3)})
async def test_a_deleted_pod_ends_by_itself(node):
    await node.started("web")
    await node.deleted()
    assert since(node.deliveries("web")) == [(0, "TERM"), (3, "exit")]
    assert ("Killing", "Stopping container main") in node.events("web")


@on_node({"main": STUBBORN})
async def test_or_is_killed_when_its_grace_is_over(node):
    await node.started("web", terminationGracePeriodSeconds=20)
    await node.deleted()
    assert since(node.deliveries("web")) == [(0, "TERM"), (20, "KILL"), (20, "exit")]


@on_node({"main": STUBBORN})
async def test_the_deletion_may_bring_its_own_grace(node):
    await node.started("web", terminationGracePeriodSeconds=20)
    await node.deleted(grace=5)
    assert since(node.deliveries("web")) == [(0, "TERM"), (5, "KILL"), (5, "exit")]


@on_node({"main": STUBBORN})
async def test_a_grace_can_be_shortened(node):
    await node.started("web", terminationGracePeriodSeconds=600)
    await node.delete("web")
    await node.clock.sleep(10)
    await node.deleted(grace=15)
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
    worker.end(TerminationOrder(5.0))
    worker.end(TerminationOrder(500.0))
    await node.until(lambda: node.phase("web") == "Failed", 10)
    assert since(node.deliveries("web")) == [(0, "TERM"), (5, "KILL"), (5, "exit")]


@on_node({"main": ContainerScript(hook=100, after_term=FOR_EVER)})
async def test_also_while_a_hook_runs(node):
    await node.started("web", {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}})
    await node.delete("web", grace=600)
    await node.clock.sleep(10)
    await node.deleted(grace=12)
    told = [what for _, what in since(node.deliveries("web"))]
    assert told == ["hook", "hook over", "TERM", "KILL", "exit"], "the hook runs once"


@on_node({"main": ContainerScript(hook=4)})
async def test_the_hook_comes_first(node):
    await node.started("web", {"name": "main", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}})
    await node.deleted()
    assert since(node.deliveries("web")) == [(0, "hook"), (4, "hook over"), (4, "TERM"), (4, "exit")]


@on_node({"main": ContainerScript(after_term=5, code=0)})
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


@on_node({"main": ContainerScript(after_term=5, code=0)})
async def test_also_if_nothing_keeps_it(node):
    seen = []
    node.server.store.on_change = lambda change: seen.append(change.new.to_object())
    await node.started("web")
    await node.deleted()
    last = [one for one in seen if one["metadata"]["name"] == "web" and "containerStatuses" in one.get("status", {})][
        -1
    ]
    assert (last["status"]["phase"], last["status"]["containerStatuses"][0]["ready"]) == ("Succeeded", False)


@on_node({"main": ContainerScript(code=143)})
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


@on_node({"main": ContainerScript(takes=60)})
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
    node.runtime.exit_container(f"{node.uids['web']}/main", 1)
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
