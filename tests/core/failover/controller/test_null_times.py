"""Times of Go that are not set are null, and an object that cannot be read at all stops the failover of no other node."""

import dataclasses
import typing

import msgspec
import pytest
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.resources import NODES
from lastcall.model import observed, snapshot
from lastcall_lab.apiserver.server.in_process import InProcessTransport

META = {"name": "x"}
TIMES = {
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "managedFields": [{"time": None}],
}
NODE = {
    "metadata": {**META, **TIMES},
    "spec": {"taints": [{"key": "k", "timeAdded": None}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}]
    },
}
POD = {
    "metadata": {**META, **TIMES},
    "status": {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}]},
}
LEASE = {"metadata": {**META, **TIMES}, "spec": {"renewTime": None, "acquireTime": None}}
ATTACHMENT = {"metadata": {**META, **TIMES}, "spec": {"nodeName": "n1", "source": {}}}
SHUTDOWN = {"metadata": {**META, **TIMES}, "status": {"startTime": None, "deadlineTime": None}}
OBJECTS = [
    (observed.WatchedNode, NODE),
    (observed.LiveNode, NODE),
    (observed.FailoverPod, POD),
    (observed.WatchedLease, LEASE),
    (observed.WatchedAttachment, ATTACHMENT),
    (observed.WatchedShutdown, SHUTDOWN),
    (snapshot.Node, NODE),
    (snapshot.SnapshotPod, POD),
    (snapshot.Lease, LEASE),
    (snapshot.VolumeAttachment, ATTACHMENT),
    (snapshot.PersistentVolume, {"metadata": {**META, **TIMES}}),
]


@pytest.mark.parametrize(("shape", "obj"), OBJECTS)
def test_a_time_that_is_null_is_one_that_is_missing(shape, obj):
    read = msgspec.json.decode(msgspec.json.encode(obj), type=shape)
    assert read.metadata.name == "x"
    assert not getattr(read.metadata, "deletion_timestamp", None)


def test_the_text_of_a_time_that_is_null_is_empty():
    node, pod, lease = (msgspec.convert(obj, shape) for shape, obj in (OBJECTS[1], OBJECTS[2], OBJECTS[3]))
    assert (node.ready_condition.last_heartbeat_time, node.metadata.last_written) == ("", "")
    assert (pod.metadata.creation_timestamp, lease.spec.renew_time) == ("", "")


def fields(shape, seen):
    """The names under which all that is read of a shape stands in JSON, with what each may be."""
    for field in msgspec.structs.fields(shape):
        yield shape.__name__, field.encode_name, field.type
        for part in (field.type, *typing.get_args(field.type)):
            if isinstance(part, type) and issubclass(part, msgspec.Struct) and part not in seen:
                seen.add(part)
                yield from fields(part, seen)


@pytest.mark.parametrize("shape", [shape for shape, _ in OBJECTS])
def test_all_times_that_are_read_may_be_null(shape):
    strict = [
        f"{where}.{name}"
        for where, name, type_ in fields(shape, set())
        if name.lower().endswith(("time", "timestamp", "timeadded")) and type(None) not in typing.get_args(type_)
    ]
    assert not strict


async def odd(world, node, **condition):
    """A node gets one more condition."""
    there = world.node(node)["status"]["conditions"]
    status = {"conditions": [*there, {"type": "ExampleProblem", "status": "False", **condition}]}
    await world.cluster.patch(NODES, node, {"status": status}, subresource="status", namespace="")


def other(place):
    """A node that is not that one."""
    return "n4" if place == "n5" else "n5"


@pytest.mark.parametrize("own", [False, True])
def test_a_condition_without_a_heartbeat_stops_no_failover(own):
    """Anybody who writes conditions brings it about; on the node itself too."""

    @failing_over
    async def scenario(world):
        world.start()
        place = world.place()
        await odd(world, place if own else other(place), lastHeartbeatTime=None, lastTransitionTime=None)
        world.nodes.pull(place)
        await world.until(lambda: world.place() not in (None, place), 120)

    scenario()


class Blurred:
    """Chunks of which some cannot be read."""

    def __init__(self, chunks, blur):
        self.chunks, self.blur = chunks, blur

    def __aiter__(self):
        return self

    async def __anext__(self):
        return self.blur(await anext(self.chunks))

    async def aclose(self):
        await self.chunks.aclose()


class Blurring(InProcessTransport):
    """A server of whose answers one text is another."""

    text = (b"", b"")

    def blur(self, data):
        return data.replace(*self.text) if self.text[0] else data

    async def request(self, *rest, **more):
        answer = await super().request(*rest, **more)
        whole = isinstance(answer.body, bytes)
        return dataclasses.replace(answer, body=self.blur(answer.body) if whole else Blurred(answer.body, self.blur))


@pytest.mark.parametrize(
    ("what", "known", "off"),
    [("node", True, True), ("node", False, True), ("lease", True, False), ("lease", True, True)],
)
def test_a_node_that_cannot_be_read_is_left_alone_and_stops_the_failover_of_no_other(monkeypatch, what, known, off):
    """It seems neither dead nor alive, whether its machine runs, or its power is off; ``known``: before that."""
    monkeypatch.setattr("support.failover.virtual_cluster.InProcessTransport", Blurring)

    @failing_over
    async def scenario(world):
        place = world.place()
        blurred = other(place)
        text = {"node": (f'"bootID":"boot-{blurred}-1"', '"bootID":5')}
        text["lease"] = (f'"holderIdentity":"{blurred}"', '"holderIdentity":5')
        candidate = world.start()
        if known:
            await world.cluster.settle(20)
        monkeypatch.setattr(Blurring, "text", tuple(one.encode() for one in text[what]))
        await world.cluster.settle(20)
        if off:
            world.nodes.pull(blurred)
        world.nodes.pull(place)
        await world.until(lambda: world.place() not in (None, place), 120)
        await world.cluster.settle(200)
        assert (world.mark(blurred), world.out_of_service(blurred)) == (None, [])
        assert not world.fences[blurred].asked
        assert (blurred in candidate.controller.observing.tracked_nodes) is (known or what == "lease")

    scenario()
