"""The lab's kubelet and an API server that is away, late or answers otherwise."""

import pytest
from support.lab.held_watches import HeldWatches
from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import ApiNotPermitted
from lastcall_lab.fakes.actor_runtime import ContainerScript

SLOW = ContainerScript(after_term=10)
HTTP = {"httpGet": {"port": 80}}


# -- an API server that is away ----------------------------------------------------------------------------------------


@on_node({"main": [ContainerScript(lives=30, code=3), ContainerScript()]})
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


@on_node({"main": ContainerScript(after_term=10)})
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
    await node.deleted()
    listed = await node.kubelet.means.client.list(PODS, fields="spec.nodeName=n1")
    assert not listed.items, "it is gone"
    with pytest.raises(ApiNotPermitted, match="no relationship found between node"):
        await node.kubelet.means.client.get(PODS, "web", namespace="default")


# -- a server that answers otherwise -----------------------------------------------------------------------------------


class Refusing:
    """A transport whose first writes of one kind are answered with 409 Conflict."""

    def __init__(self, transport, method, path, times):
        self.transport, self.method, self.path, self.times = transport, method, path, times

    async def request(self, method, target, *arguments, **options):
        if method == self.method and target.split("?")[0].endswith(self.path) and self.times:
            self.times -= 1
            return ApiResponse(
                409, {}, b'{"kind": "Status", "reason": "Conflict", "message": "try again", "code": 409}'
            )
        return await self.transport.request(method, target, *arguments, **options)

    def close(self):
        self.transport.close()


@on_node({"main": ContainerScript(lives=5)})
async def test_a_status_that_met_a_conflict_is_written_later(node):
    await node.started("web", restartPolicy="Never")
    node.line.transport = Refusing(node.line.transport, "PATCH", "/pods/web/status", times=3)
    await node.until(lambda: node.pod("web")["status"]["phase"] == "Succeeded")
    assert node.line.transport.times == 0


@on_node({"main": ContainerScript(after_term=1, code=0)})
async def test_a_last_status_that_met_a_conflict_is_written_before_the_pod_goes(node):
    seen = []
    node.server.store.on_change = lambda change: seen.append(change.new.to_object())
    await node.started("web")
    node.line.transport = Refusing(node.line.transport, "PATCH", "/pods/web/status", times=3)
    await node.deleted()
    assert node.line.transport.times == 0
    last = [one for one in seen if one["metadata"]["name"] == "web"][-1]
    assert last["status"]["phase"] == "Succeeded"


@on_node({"main": ContainerScript(after_term=1)})
async def test_a_deletion_that_met_a_conflict_is_asked_for_again(node):
    await node.started("web")
    node.line.transport = Refusing(node.line.transport, "DELETE", "/pods/web", times=3)
    await node.deleted()
    assert node.line.transport.times == 0


@on_node({"main": ContainerScript(ready_after=10, after_term=1)})
async def test_a_deletion_that_the_answer_to_a_status_has_told_first_is_heeded(node):
    """The watch is late, and what it brings then is known already."""
    watches = node.line.transport = HeldWatches(node.line.transport)
    await node.stop()
    node.boot()
    await node.started("web", {"name": "main", "readinessProbe": {**HTTP, "periodSeconds": 1}})
    watches.held = True
    await node.delete("web")
    await node.until(lambda: node.ready("web"), 30)
    assert node.pod("web")["metadata"]["deletionTimestamp"]
    watches.held = False
    await node.until(lambda: node.pod("web") is None, 30)


@on_node({"main": ContainerScript(after_term=5)})
async def test_a_deleted_pod_that_a_restore_of_etcd_brings_back_is_deleted_again(node):
    """The watch is cut between the DELETE and its event, and the next list has the pod as it was before."""
    watches = node.line.transport = HeldWatches(node.line.transport)
    await node.stop()
    node.boot()
    await node.started("web")
    await node.delete("web")
    await node.clock.sleep(2)
    backup, watches.held = node.server.store.backup(), True
    await node.until(lambda: node.pod("web") is None, 30)
    node.line.cut = True
    node.server.store.restore(backup)
    await node.clock.sleep(30)
    assert node.pod("web")["metadata"]["deletionTimestamp"]
    node.line.cut = watches.held = False
    await node.until(lambda: node.pod("web") is None, 60)
    await node.clock.sleep(5)
    assert node.kubelet.pods.workers == {}
