"""Nodes of the lab that are gone, with real processes that write: what the controller does, judged by who wrote what when."""

import asyncio

import pytest
from support.lab.real_machines import CLOCK, IMAGE, Lab, ready

from lastcall.adapters.kube.failover_cluster import COMPONENT
from lastcall.adapters.kube.resources import EVENTS, NODES, dict_resource
from lastcall.names import FAILOVER_ANNOTATION, OUT_OF_SERVICE
from lastcall_lab.machines.bmc import BmcFaults
from lastcall_lab.volumes.volume_events import find_violations

pytestmark = pytest.mark.timeout(510)
STATEFUL_SETS = dict_resource("apps", "v1", "statefulsets")
SUSPECT_AFTER = "21s"
WRITER = """\
DATA=${VOLUME_DATA:-/data}
row=0
while :; do
  row=$((row + 1))
  read up rest </proc/uptime
  echo "$POD_UID $row" >>"$DATA/rows" && echo "$up $POD_UID $row" >>TRUTH
  sleep 0.2
done
"""
"""Writes rows to its volume; a row that is also in the truth was acknowledged."""


@pytest.fixture
async def lab(tmp_path):
    async with Lab(tmp_path, "processes", count=3, suspect_after=SUSPECT_AFTER).up() as lab:
        lab.volumes = tmp_path / "volumes"
        yield lab


async def database(lab):
    """A StatefulSet of one pod that writes; the pod, which does so already."""
    container = {
        "name": "db",
        "image": IMAGE,
        "command": ["sh", "-c", WRITER.replace("TRUTH", str(lab.truth))],
        "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "truth", "mountPath": str(lab.truth.parent)},
        ],
    }
    spec = {"containers": [container], "volumes": [{"name": "truth", "hostPath": {"path": str(lab.truth.parent)}}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {
        "replicas": 1,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": spec},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    await lab.client.create(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": body}, namespace="default")
    await lab.running("db", 1)
    pod = await lab.pod("db-0")
    await until_writes(lab, pod)
    return pod


def rows(lab, uid):
    """When a pod's rows were acknowledged, in order."""
    lines = [line.split() for line in lab.truth.read_text().splitlines()] if lab.truth.exists() else []
    return [float(at) for at, pod, _ in lines if pod == uid]


async def until_writes(lab, pod, seconds=120):
    async def check():
        return bool(rows(lab, pod["metadata"]["uid"]))

    await lab.until(check, seconds)


async def until_failed_over(lab, before, seconds=240):
    """The database as it runs elsewhere, and writes."""

    async def elsewhere():
        found = [one for one in await lab.pods(app="db") if one["metadata"]["uid"] != before["metadata"]["uid"]]
        return bool(found and ready(found[0]))

    await lab.until(elsewhere, seconds)
    after = await lab.pod("db-0")
    assert after["spec"]["nodeName"] != before["spec"]["nodeName"]
    await until_writes(lab, after)
    return after


async def told(lab):
    """The controller's events, as reasons."""
    return [
        one["reason"] for one in (await lab.client.list(EVENTS)).items if one.get("reportingComponent") == COMPONENT
    ]


def judge(lab, before, after):
    """Nothing that was acknowledged is lost, and the old copy had written its last row before the new one's first."""
    old, new = before["metadata"]["uid"], after["metadata"]["uid"]
    [path] = lab.volumes.rglob("rows")
    kept = set(path.read_text().splitlines())
    acknowledged = {" ".join(line.split()[1:]) for line in lab.truth.read_text().splitlines()}
    assert acknowledged <= kept
    assert max(rows(lab, old)) < min(rows(lab, new))
    assert find_violations(lab.storage.records) == []


@pytest.mark.parametrize("how", ["off", "hang", "partition"])
async def test_a_node_that_is_gone_is_fenced_and_what_wrote_there_writes_elsewhere(lab, how):
    """Also one that is only silent: hung or cut off its pods write on, until its power is cut."""
    before = await database(lab)
    node, begun = before["spec"]["nodeName"], CLOCK.boottime()
    await lab.machines.switch(node, how)
    after = await until_failed_over(lab, before)
    judge(lab, before, after)
    assert lab.machines.hosts[node].kubelet is None, "its machine is off"
    if how != "off":
        assert max(rows(lab, before["metadata"]["uid"])) > begun + 5, "it has written while nobody heard of it"
    assert {"FailoverBegun", "FenceOff", "NodeDead"} <= set(await told(lab))
    taints = (await lab.node(node))["spec"]["taints"]
    assert OUT_OF_SERVICE in [taint["key"] for taint in taints]


def orders_to(bmc):
    """The orders that a BMC has answered, from now on: the event that tells of one comes before it."""
    answered, power = [], bmc.power

    async def note(*, on):
        await power(on=on)
        answered.append(on)

    bmc.power = note
    return answered


STUCK = BmcFaults(stuck=True)
"""Its BMC accepts each order, and the machine stays on."""


@pytest.mark.parametrize(
    ("faults", "reason", "after"),
    [
        (STUCK, "FenceOff", STUCK),
        (STUCK, "FenceOff", BmcFaults(deaf=True)),
        (STUCK, "FenceOff", BmcFaults(wired="lab-3")),
        (BmcFaults(deaf=True), "NotFenced", BmcFaults(deaf=True)),
        (BmcFaults(wired="lab-3"), "NotFenced", BmcFaults(wired="lab-3")),
    ],
    ids=[
        "says that it has switched",
        "does not answer after the order",
        "answers for another machine after the order",
        "does not answer",
        "answers for another machine",
    ],
)
async def test_without_proof_nothing_is_forced(lab, faults, reason, after):
    """And as soon as the BMC is mended the database fails over.

    A node is marked only when a BMC can be told to switch it off, so a BMC that never answered, or that answered for another
    machine, leaves the Node without a mark. The faults ``after`` come when the Node is marked and the order was given.
    """
    before = await database(lab)
    node = before["spec"]["nodeName"]
    wired = next(name for name in lab.machines.names if name != node)
    bmc = lab.machines.bmc(node)
    bmc.faults = BmcFaults(wired=wired) if faults.wired else faults
    orders = orders_to(bmc)
    await lab.machines.switch(node, "partition")

    async def tried():
        return reason in await told(lab) and (reason == "NotFenced" or bool(orders))

    await lab.until(tried)
    bmc.faults = BmcFaults(wired=wired) if after.wired else after
    await asyncio.sleep(15)
    same = await lab.pod("db-0")
    assert same["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in same["metadata"]
    found = await lab.node(node)
    assert OUT_OF_SERVICE not in [one["key"] for one in found["spec"].get("taints", ())]
    assert (FAILOVER_ANNOTATION in found["metadata"].get("annotations", {})) == (reason == "FenceOff")
    assert all(one["power"] == ("partition" if one["name"] == node else "on") for one in lab.machines.status())
    bmc.faults = BmcFaults()
    judge(lab, before, await until_failed_over(lab, before))


async def test_a_planned_reboot_is_not_fenced(lab):
    before = await database(lab)
    node = before["spec"]["nodeName"]
    await lab.machines.switch(node, "button")

    async def off():
        return next(one for one in lab.machines.status() if one["name"] == node)["power"] == "off"

    await lab.until(off)
    await asyncio.sleep(5)
    await lab.machines.switch(node, "on")

    async def back():
        return ready(await lab.client.get(NODES, node)) and bool(await lab.running("db", 1))

    await lab.until(back)
    await asyncio.sleep(25)
    assert await told(lab) == []
    assert find_violations(lab.storage.records) == []
