"""The node of the lab's kubelet: its registration, its lease and its conditions."""

import contextlib
import logging

from support.lab.virtual_node import on_node

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import LEASES, NODES


@contextlib.contextmanager
def complaints():
    """What the node warns of meanwhile."""
    said, handler = [], logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("lastcall_lab.kubelet.cluster.node_reporter")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


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
async def test_its_own_readiness_replaces_that_of_others_within_ten_seconds(node):
    await node.clock.sleep(15)
    body = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Other"}]}}
    await node.client.patch(NODES, "n1", body, subresource="status", kind=STRATEGIC)

    def reason():
        return next(one["reason"] for one in node.node()["status"]["conditions"] if one["type"] == "Ready")

    assert reason() == "Other"
    await node.until(lambda: reason() == "KubeletReady", 10)


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
