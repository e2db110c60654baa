"""Nodes of the lab go down as the API and the pods tell it: in phases, called off, with the agent killed, cut off.

With real processes and with real containers.
"""

import asyncio
import time
from datetime import datetime

import pytest
from support.lab.real_machines import Lab, boottime, condition, ready
from support.runtimes import containerd_world

from lastcall.adapters.kube.resources import NODES, PRIORITY_CLASSES, dict_resource

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-shutdowns")]
CONFIG = b"""\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 40}
- {priority: 1000, shutdownGracePeriodSeconds: 40}
- {priority: 2000000000, shutdownGracePeriodSeconds: 40}
"""
CRITICAL = {"priorityClassName": "system-node-critical"}
IMPORTANT = {"priorityClassName": "important"}
MESSAGE = "Pod was terminated in response to imminent node shutdown."
DEPLOYMENTS, DAEMON_SETS = dict_resource("apps", "v1", "deployments"), dict_resource("apps", "v1", "daemonsets")
STATEFUL_SETS, JOBS = dict_resource("apps", "v1", "statefulsets"), dict_resource("batch", "v1", "jobs")


@pytest.fixture(params=["processes", "containerd"])
async def lab(request, tmp_path):
    if request.param == "containerd" and (reason := containerd_world.why_not()):
        pytest.skip(reason)
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    async with Lab(tmp_path, request.param, config=CONFIG).up() as lab:
        important = {"metadata": {"name": "important"}, "value": 1000}
        await lab.client.create(PRIORITY_CLASSES, important)
        yield lab


async def three(lab, takes=1):
    """A pod in each phase, and what becomes of them in the order that is right."""
    await lab.add("web", takes=takes)
    await lab.add("db", takes=takes, **IMPORTANT)
    await lab.add("dns", takes=takes, **CRITICAL)
    await lab.until_ready("web", "db", "dns")


def in_order(lab, *names):
    times = [lab.when(name, what) for name in names for what in ("TERM", "exit")]
    assert times == sorted(times), "each phase after the one before, SIGTERM once each"


async def terminated(lab, *names):
    """The final word about pods that were ended by the shutdown."""
    for name in names:
        status = (await lab.pod(name))["status"]
        assert (status["phase"], status.get("reason"), status.get("message")) == ("Failed", "Terminated", MESSAGE), name
        target = condition({"status": status}, "DisruptionTarget")
        assert (target["status"], target["reason"], target["message"]) == ("True", "TerminationByKubelet", MESSAGE)
        assert condition({"status": status}, "Ready")["reason"] == "PodFailed"
        assert [one["state"]["terminated"]["exitCode"] for one in status["containerStatuses"]] == [0], name


async def going_down(lab):
    said = condition(await lab.node(), "Ready")
    return (said["status"], said["reason"], said["message"]) == ("False", "KubeletNotReady", "node is shutting down")


async def test_phases_hooks_and_a_sidecar_as_the_api_and_the_pods_tell_them(lab):
    await lab.add("web", takes=1, hook=1)
    await lab.add("mesh", takes=1, sidecar=1, **IMPORTANT)
    await lab.add("dns", takes=1, **CRITICAL)
    await lab.until_ready("web", "mesh", "dns")
    async with lab.told() as told:
        await lab.machines.switch("lab-1", "button")
        await lab.until_off()
        wanted = [("lab-1", "Ready False"), ("web", "Failed"), ("mesh", "Failed"), ("dns", "Failed")]

        async def all_told():
            return set(wanted) <= set(told)

        await lab.until(all_told)
    times = [lab.when("web", what) for what in ("hook", "hook-over", "TERM", "exit")]
    times += [lab.when("mesh", "TERM"), lab.when("mesh", "exit")]
    times += [lab.when("mesh", what, "sidecar") for what in ("TERM", "exit")]
    times += [lab.when("dns", what) for what in ("TERM", "exit")]
    assert times == sorted(times)
    assert [one for one in told if one in wanted] == wanted, "the API tells it in the order in which it was"
    assert await going_down(lab)
    since = datetime.fromisoformat(condition(await lab.node(), "Ready")["lastTransitionTime"]).timestamp()
    assert boottime(since) <= lab.when("web", "hook") + 0.05
    await terminated(lab, "web", "mesh", "dns")
    status = (await lab.pod("mesh"))["status"]
    ends = [one["state"]["terminated"] for one in status["containerStatuses"] + status["initContainerStatuses"]]
    assert [one["exitCode"] for one in ends] == [0, 0]
    assert ends[0]["finishedAt"] <= ends[1]["finishedAt"], "the sidecar's end is the later one"


async def test_a_shutdown_is_called_off_half_way(lab):
    replicas = {"selector": {"matchLabels": {"app": "shop"}}, "template": lab.template("shop", takes=0)}
    await lab.client.create(
        DEPLOYMENTS, {"metadata": {"name": "shop"}, "spec": {"replicas": 2, **replicas}}, namespace="default"
    )
    everywhere = {"selector": {"matchLabels": {"app": "logs"}}, "template": lab.template("logs", takes=0)}
    await lab.client.create(DAEMON_SETS, {"metadata": {"name": "logs"}, "spec": everywhere}, namespace="default")
    await lab.running("shop", 2)
    [logs] = [one for one in await lab.running("logs", 2) if one["spec"]["nodeName"] == "lab-1"]
    await three(lab)
    await lab.add("slow", takes=8)
    await lab.until_ready("slow")

    await lab.machines.switch("lab-1", "button")
    await lab.until_saw("slow", "TERM")
    await lab.until_saw("web", "exit")
    await lab.until_saw(logs["metadata"]["name"], "exit")
    assert await going_down(lab)
    await lab.until(lambda: has_failed(lab, "web"))  # what has not failed yet would be started again
    await lab.machines.switch("lab-1", "on")

    async def well():
        node = await lab.node()
        return ready(node) and not node["spec"].get("taints") and not node["spec"].get("unschedulable")

    await lab.until(well)
    await lab.running("shop", 2)
    assert {one["spec"]["nodeName"] for one in await lab.running("logs", 2)} == {"lab-1", "lab-2"}, "it has a new one"
    await lab.until_saw("slow", "exit")
    await lab.add("newcomer", takes=0)
    await lab.until_ready("newcomer")
    for name in ("web", "slow"):
        await lab.until(lambda name=name: has_failed(lab, name))
    await terminated(lab, "web", "slow")
    for name in ("db", "dns"):
        assert ready(await lab.pod(name))
        assert lab.saw(name, "TERM") == []
    assert lab.power == "on"

    await lab.machines.switch("lab-1", "button")
    await lab.until_off()
    in_order(lab, "newcomer", "db", "dns")
    await terminated(lab, "web", "slow", "newcomer", "db", "dns")
    assert len(lab.saw("web", "start")) == 1, "what has failed stays so"


async def has_failed(lab, name):
    return (await lab.pod(name))["status"]["phase"] == "Failed"


@pytest.mark.parametrize("pod", ["web", "db"])
async def test_the_agent_and_the_kubelet_are_killed_and_started_again(lab, pod):
    await three(lab, takes=2)
    await lab.machines.switch("lab-1", "button")
    await lab.until_saw(pod, "TERM")
    await lab.host.stop_kubelet()
    await asyncio.sleep(0.5)
    assert lab.power == "button", "the lock outlives the agent"
    await lab.host.start_kubelet()
    await lab.until_off()
    in_order(lab, "web", "db", "dns")
    assert boottime(time.time()) - lab.when("web", "TERM") < 100, "not by logind's own limit of two minutes"
    assert await going_down(lab)
    await terminated(lab, "web", "db", "dns")


async def test_a_pod_ends_while_neither_agent_nor_kubelet_is_there(lab):
    await three(lab)
    await lab.machines.switch("lab-1", "button")
    await lab.until_saw("db", "TERM")
    await lab.host.stop_kubelet()
    await lab.until_saw("db", "exit")
    await asyncio.sleep(0.3)
    await lab.host.start_kubelet()
    await lab.until_off()
    in_order(lab, "web", "db", "dns")
    await terminated(lab, "web", "db", "dns")


async def test_the_machine_is_cut_off_while_it_goes_down(lab):
    """What ends while nobody can be told is told when somebody can."""
    await three(lab, takes=2)
    await lab.machines.switch("lab-1", "partition")
    await lab.machines.switch("lab-1", "button")
    await lab.until_saw("db", "TERM")
    assert ready(await lab.node())
    assert ready(await lab.pod("web"))
    cable = lab.machines._machines["lab-1"].cable
    assert cable.cut
    cable.cut = False
    for name in ("web", "db"):
        await lab.until(lambda name=name: has_failed(lab, name))
    assert await going_down(lab)
    await lab.until_off()
    in_order(lab, "web", "db", "dns")
    await terminated(lab, "web", "db", "dns")


async def test_the_machine_is_cut_off_all_the_time(lab):
    """The pods end all the same, in their phases and in time; nobody hears of it."""
    await three(lab)
    await lab.machines.switch("lab-1", "partition")
    await lab.machines.switch("lab-1", "button")
    await lab.until_off()
    in_order(lab, "web", "db", "dns")
    for name in ("web", "db", "dns"):
        assert (await lab.pod(name))["status"]["phase"] == "Running"
    await lab.machines.switch("lab-1", "on")
    await lab.until(lambda: again(lab, "web", "db", "dns"))


async def again(lab, *names):
    """They run anew, as after any power cut."""
    found = [(await lab.pod(name))["status"]["containerStatuses"][0] for name in names]
    return all(one["restartCount"] == 1 and one["ready"] for one in found)


async def test_a_job_and_a_stateful_set_go_on_elsewhere(lab):
    job = {
        "metadata": {"name": "sums"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": lab.template("sums", restartPolicy="Never"),
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
        },
    }
    await lab.client.create(JOBS, job, namespace="default")
    selector = {"matchLabels": {"app": "store"}}
    store = {"replicas": 2, "selector": selector, "serviceName": "store", "template": lab.template("store")}
    await lab.client.create(STATEFUL_SETS, {"metadata": {"name": "store"}, "spec": store}, namespace="default")
    there = [
        one for app in ("sums", "store") for one in await lab.running(app, 2) if one["spec"]["nodeName"] == "lab-1"
    ]
    assert {one["metadata"]["labels"]["app"] for one in there} == {"sums", "store"}, "the scheduler spreads them"
    await lab.machines.switch("lab-1", "button")
    await lab.until_off()
    for app in ("sums", "store"):
        assert {one["spec"]["nodeName"] for one in await lab.running(app, 2)} == {"lab-2"}
    ended = [one for one in await lab.pods(app="sums") if not ready(one)]
    await terminated(lab, *(one["metadata"]["name"] for one in ended))
    assert {one["metadata"]["uid"] for one in ended} <= {one["metadata"]["uid"] for one in there}
    assert sorted(one["metadata"]["name"] for one in await lab.pods(app="store")) == ["store-0", "store-1"]
    job = await lab.client.get(JOBS, "sums", namespace="default")
    assert (job["status"]["active"], job["status"].get("succeeded", 0)) == (2, 0), (
        "an exit code of 0 is no success here"
    )
    await lab.machines.switch("lab-1", "on")

    async def back():
        return ready(await lab.client.get(NODES, "lab-1"))

    await lab.until(back)
