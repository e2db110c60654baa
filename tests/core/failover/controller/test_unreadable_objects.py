"""One object that cannot be read: the server has failed once, not each time, and other nodes are fenced all the same."""

import json
from random import Random

import pytest
from support.failover.small_cluster import World, attachment
from support.failover.virtual_cluster import NAMES, failing_over
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.api_errors import ApiStatus, status_error
from lastcall.adapters.kube.api_health import ApiHealth, HealthTrackingTransport
from lastcall.adapters.kube.failover_cluster import COMPONENT, KubeCluster
from lastcall.adapters.kube.resources import ATTACHMENTS
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import Unavailable
from lastcall.failover.decisions import steps
from lastcall.failover.decisions.case import CaseAttachment
from lastcall_lab.apiserver.server.in_process import InProcessTransport

POLICY = {"limits": {"minHealthy": 1, "settle": "60s", "perDomain": 5, "perHour": 50}}
SICK = "Internal error occurred: unable to decode what is stored"
NOW = 100.0


class Answers:
    """A transport that gives one answer."""

    def __init__(self, answer):
        self._answer = answer

    async def request(self, method, target, headers, body, *, stream=False):
        return self._answer


A, B = "/apis/a", "/apis/b"


@pytest.mark.parametrize(
    ("before", "now", "noted"),
    [
        ([], ("GET", A, 500), True),
        ([], ("GET", A, 404), False),
        ([("GET", A, 500)], ("GET", A, 500), False),
        ([("GET", A, 500), ("GET", A, 503)], ("GET", A, 504), False),
        ([("GET", A, 500), ("GET", B, 200)], ("GET", A, 500), False),
        ([("GET", A, 500)], ("GET", B, 500), True),
        ([("GET", A, 500), ("GET", B, 500)], ("GET", A, 500), True),
        ([("GET", A, 500), ("PUT", B, 500)], ("GET", A, 500), True),
        ([("GET", A, 500), ("GET", A, 200)], ("GET", A, 500), True),
        ([("GET", A, 500), ("GET", A, 404)], ("GET", A, 500), True),
        ([("GET", A, 500)], ("DELETE", A, 500), True),
        ([("DELETE", A, 500)], ("DELETE", A, 500), True),
    ],
)
async def test_what_alone_cannot_be_read_is_a_failure_of_the_server_once(before, now, noted):
    clock = Hand(NOW)
    health = ApiHealth(clock)

    async def ask(method, target, code):
        body = json.dumps({"kind": "Status", "message": SICK, "code": code}).encode()
        await HealthTrackingTransport(Answers(ApiResponse(code, {}, body)), health).request(method, target, {}, b"")

    for one in before:
        await ask(*one)
    clock.now += 10
    known = health.run
    await ask(*now)
    assert (health.run == known + 1) is noted


class Lists(Answers):
    """It answers with a list of these."""

    def __init__(self, *items):
        super().__init__(ApiResponse(200, {}, json.dumps({"metadata": {}, "items": items}).encode()))

    def cluster(self):
        return KubeCluster(self, Hand(NOW), Random(1))


async def test_a_lease_of_an_agent_that_cannot_be_read_is_left_out():
    odd = {"metadata": {"name": "n2"}, "spec": {"renewTime": 7}}
    found = (
        await Lists({"metadata": {"name": "n1"}}, odd, {"metadata": {"name": "n3"}}).cluster().list_watchdog_leases()
    )
    assert [one.metadata.name for one in found] == ["n1", "n3"]


async def test_of_a_pod_of_etcd_its_node_is_enough():
    odd = {"metadata": {"name": "etcd-n2", "deletionGracePeriodSeconds": "7"}, "spec": {"nodeName": "n2"}, "status": 7}
    places = Lists({"metadata": {"name": "etcd-n1"}, "spec": {"nodeName": "n1"}}, odd, {"spec": {}})
    assert await places.cluster().list_etcd_nodes() == {"n1", "n2"}


async def test_where_a_pod_of_etcd_is_must_be_known():
    with pytest.raises(Unavailable):
        await Lists({"metadata": {"name": "etcd-n1"}, "spec": {"nodeName": 7}}).cluster().list_etcd_nodes()


async def test_an_attachment_that_the_server_fails_at_when_it_is_read_is_left_out_of_the_next_step(monkeypatch):
    """It has changed since the watch has shown it, so that it is read."""
    world = World()
    world.watched = (attachment("va", "a", "70", "n"),)
    world.cluster.attached = {"va": ("a", "71", "n")}

    async def fails(name):
        raise status_error(ApiStatus(message=SICK, code=500))

    monkeypatch.setattr(world.cluster, "read_attachment", fails)
    subject = await world.subject()
    step = steps.Detach(boot_id="b1", why="w", attachments=(CaseAttachment(uid="a", name="va", volume=""),))
    with pytest.raises(Unavailable):
        await world.acting.carry_out(step, subject)
    assert list(world.refusals) == ["a"]
    assert not world.cluster.calls


@pytest.mark.parametrize("where", ["/leases/", "/volumeattachments/a", "/persistentvolumes/none"])
def test_one_object_that_cannot_be_read_stops_no_other_node(monkeypatch, where):
    real, broken = InProcessTransport.request, []

    async def request(self, method, target, headers, body, *, stream=False):
        path = target.partition("?")[0]
        if (
            method == "GET"
            and any(path.endswith(one) for one in broken)
            and headers["user-agent"].startswith(COMPONENT)
        ):
            return ApiResponse(500, {}, json.dumps({"kind": "Status", "message": SICK, "code": 500}).encode())
        return await real(self, method, target, headers, body, stream=stream)

    monkeypatch.setattr(InProcessTransport, "request", request)

    @failing_over(policy=POLICY, without=("attachdetach",))
    async def scenario(world):
        node = next(one for one in NAMES if one != world.place("web"))
        spec = {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": "none"}}
        await world.cluster.create(ATTACHMENTS, {"metadata": {"name": "a"}, "spec": spec}, namespace="")
        world.start(detach=True)
        await world.cluster.settle(90)
        broken.append(f"kube-node-lease{where}{node}" if where == "/leases/" else where)
        world.nodes.pull(node)
        await world.cluster.settle(120)
        other = world.place("web")
        world.nodes.pull(other)
        await world.until(lambda: world.out_of_service(other), 300)

    scenario()
