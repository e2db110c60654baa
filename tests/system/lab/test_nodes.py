"""Nodes of the lab with real processes and containers, through the control plane: down by the button, by the plug."""

import asyncio

import pytest
from support.lab.real_machines import Lab, ready
from support.runtimes import containerd_world

from lastcall.adapters.kube.resources import NODES, PODS, dict_resource
from lastcall.errors import InvalidInput
from lastcall_lab.up.shutdown_managers import ShutdownManagerType
from lastcall_lab.volumes.volume_events import find_violations

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("containerd-lab-nodes")]
DEPLOYMENTS, STATEFUL_SETS = dict_resource("apps", "v1", "deployments"), dict_resource("apps", "v1", "statefulsets")
ENDED = "Pod was terminated in response to imminent node shutdown."
LOOP = 'trap "%s" TERM; while :; do sleep 1 & wait $!; done'


def workload(kind, name, command, **spec):
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {"name": "c", "image": "localhost/lastcall/busybox:lab", "command": ["sh", "-c", command], **spec}
            ],
        },
    }
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": 2, "selector": selector, "template": template}}


@pytest.fixture(params=["processes", "containerd"])
def runtime(request):
    if request.param == "containerd" and (reason := containerd_world.why_not()):
        pytest.skip(reason)
    return request.param


@pytest.fixture
async def lab(runtime, tmp_path):
    async with Lab(tmp_path, runtime).up() as lab:
        yield lab


@pytest.fixture
async def baseline(runtime, tmp_path):
    """Its nodes go down as a kubelet does it alone."""
    async with Lab(tmp_path, runtime, manager=ShutdownManagerType.KUBELET).up() as lab:
        yield lab


async def test_a_node_goes_down_by_its_button_and_comes_back(lab):
    await lab.client.create(DEPLOYMENTS, workload("Deployment", "web", LOOP % "exit 0"), namespace="default")
    before = await lab.running("web", 2)
    there = [pod for pod in before if pod["spec"]["nodeName"] == "lab-1"]
    assert there, "the scheduler spreads them"
    await lab.machines.switch("lab-1", "button")

    async def off():
        return lab.machines.status()[0]["power"] == "off"

    await lab.until(off)
    for pod in there:
        left = await lab.client.get(PODS, pod["metadata"]["name"], namespace="default")
        assert left["status"]["phase"] == "Failed"
        assert left["status"]["reason"] == "Terminated"
        assert left["status"]["message"] == ENDED
        [target] = [one for one in left["status"]["conditions"] if one["type"] == "DisruptionTarget"]
        assert target["reason"] == "TerminationByKubelet"
    node = await lab.client.get(NODES, "lab-1")
    [said] = [one for one in node["status"]["conditions"] if one["type"] == "Ready"]
    assert (said["status"], said["reason"], said["message"]) == (
        "False",
        "KubeletNotReady",
        "node is shutting down",
    )
    after = await lab.running("web", 2)
    assert {pod["spec"]["nodeName"] for pod in after} == {"lab-2"}
    await lab.machines.switch("lab-1", "on")

    async def back():
        return ready(await lab.client.get(NODES, "lab-1"))

    await lab.until(back)
    assert find_violations(lab.storage.records) == []


async def test_by_the_kubelets_own_manager_a_pod_that_ends_well_has_succeeded(baseline):
    """The baseline: phases by the kubelet's rules, no agent, no journal; the pods come up again with the node."""
    lab = baseline
    for name, code in (("calm", 0), ("web", 143)):
        spec = workload("Deployment", name, LOOP % f"exit {code}")
        spec["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "lab-1"}
        await lab.client.create(DEPLOYMENTS, spec, namespace="default")
    before = {name: await lab.running(name, 2) for name in ("calm", "web")}
    assert [one["shutdownManager"] for one in lab.machines.status()] == ["kubelet", "kubelet"]
    assert not (lab.site.directory / "lab-1" / "agent").exists()
    assert [one.path.rpartition("/")[2] for one in lab.machines.hosts["lab-1"].logind.files.list_drop_ins()] == [
        "99-kubelet.conf"
    ], "it raises logind's limit by its own drop-in"
    await lab.machines.switch("lab-1", "button")

    async def off():
        return lab.machines.status()[0]["power"] == "off"

    await lab.until(off)
    for name, said in {"calm": ("Succeeded", None, None), "web": ("Failed", "Terminated", ENDED)}.items():
        for pod in before[name]:
            status = (await lab.client.get(PODS, pod["metadata"]["name"], namespace="default"))["status"]
            assert (status["phase"], status.get("reason"), status.get("message")) == said
            [target] = [one for one in status["conditions"] if one["type"] == "DisruptionTarget"]
            assert target["reason"] == "TerminationByKubelet"
    node = await lab.client.get(NODES, "lab-1")
    [said] = [one for one in node["status"]["conditions"] if one["type"] == "Ready"]
    assert (said["status"], said["message"]) == ("False", "node is shutting down")
    await lab.machines.switch("lab-1", "on")

    async def back():
        return ready(await lab.client.get(NODES, "lab-1"))

    await lab.until(back)
    await lab.running("web", 2)


async def test_the_plug_is_pulled_and_nothing_of_the_machine_is_heard(lab):
    await lab.client.create(DEPLOYMENTS, workload("Deployment", "web", LOOP % "exit 0"), namespace="default")
    before = await lab.running("web", 2)
    there = [pod["metadata"]["name"] for pod in before if pod["spec"]["nodeName"] == "lab-1"]
    await lab.machines.switch("lab-1", "off")
    assert lab.machines.hosts["lab-1"].kubelet is None
    await asyncio.sleep(1)
    for name in there:
        pod = await lab.client.get(PODS, name, namespace="default")
        assert ready(pod), "nobody has said otherwise yet: a node that is silent is given its grace period"
    with pytest.raises(InvalidInput, match="lab-1 is off: hang makes no sense"):
        await lab.machines.switch("lab-1", "hang")
    with pytest.raises(InvalidInput, match='"lab-9" is no machine of this lab; there are lab-1, lab-2'):
        await lab.machines.switch("lab-9", "off")
    with pytest.raises(InvalidInput, match='"explode" is no position of a switch'):
        await lab.machines.switch("lab-2", "explode")


async def test_a_pod_is_ended_by_its_deletion_and_made_again(lab, tmp_path):
    gate = tmp_path / "gate"
    gate.mkdir()
    mounts = [{"name": "gate", "mountPath": str(gate)}]
    script = f"while ! [ -e {gate}/open ]; do sleep 0.05; done; exit 0"
    gated = workload("Deployment", "web", LOOP % script, volumeMounts=mounts)
    gated["spec"]["template"]["spec"] |= {
        "terminationGracePeriodSeconds": 600,
        "volumes": [{"name": "gate", "hostPath": {"path": str(gate)}}],
    }
    await lab.client.create(DEPLOYMENTS, gated, namespace="default")
    [one, *_] = await lab.running("web", 2)
    name = one["metadata"]["name"]
    await lab.client.delete(PODS, name, namespace="default")
    leaving = await lab.client.get(PODS, name, namespace="default")
    assert leaving["metadata"]["deletionTimestamp"]
    (gate / "open").touch()

    async def gone():
        return name not in [pod["metadata"]["name"] for pod in await lab.pods(app="web")]

    await lab.until(gone)
    await lab.running("web", 2)
