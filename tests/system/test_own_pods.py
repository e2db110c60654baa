"""The agent beside a kubelet, whose pods only the API server describes: containerd, logind, the lab's API server."""

import asyncio
import json
import re
import sys

import pytest
import yaml
from support.agents.system_node import PATIENT, Node
from support.host.logind import private_logind  # noqa: F401  (fixtures)
from support.lab.up_client import client_of, served
from support.lab.up_process import LabProcess
from support.runtimes import containerd_world
from support.runtimes.private_containerd import shared_containerd

from lastcall.adapters.kube.node_access import KUBELET_CONF
from lastcall.adapters.kube.resources import NODES, PODS, dict_resource
from lastcall.adapters.state.pod_checkpoint import NAME
from lastcall.model.agent_standing import read_standing
from lastcall.model.shutdown import PodOutcome, ShutdownMode

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-own-pods")]

ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
OF_DAEMON_SET = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "u", "controller": True}]
}
NETWORK = {"hostNetwork": True, "volumes": [{"name": "bin", "hostPath": {"path": "/opt/cni/bin"}}]}


@pytest.fixture
async def lab(tmp_path):
    process = LabProcess(tmp_path / "lab")
    await asyncio.to_thread(process.start)
    yield process
    await asyncio.to_thread(process.end)


@pytest.fixture
async def node(private_logind, tmp_path):  # noqa: F811
    if reason := containerd_world.why_not():
        pytest.skip(reason)
    containerd = await asyncio.to_thread(shared_containerd)
    node = Node(tmp_path / "node", private_logind, endpoint=containerd.endpoint, config=PATIENT)
    for path in (tmp_path, node.directory, node.truth.parent, node.truth):
        path.chmod(0o777)
    yield node
    await node.clean_up()
    await containerd.remove_pods()


class Bound:
    """Pods of the API that are bound to the node, and run there under their uids."""

    def __init__(self, lab, node):
        self.lab, self.node = lab, node

    async def create(self, client, name, priority_class="", *, sidecar=None, metadata=None, spec=None, **options):
        main = {"name": "main", "image": "i"}
        spec = {"nodeName": "n1", "containers": [main], "priorityClassName": priority_class, **(spec or {})}
        if sidecar is not None:
            spec["initContainers"] = [{"name": "sidecar", "image": "i", "restartPolicy": "Always"}]
        metadata = {"name": name, **(metadata or {})}
        made = await client.create(PODS, {"metadata": metadata, "spec": spec}, namespace="default")
        self.node.add(name, uid=made["metadata"]["uid"], sidecar=sidecar, **options)

    async def begin(self):
        """They run, and the agent beside them knows neither manifests nor annotations."""
        with client_of(self.lab) as client:
            await served(lambda: client.get(ACCOUNTS, "default", namespace="default"))
            await client.create(NODES, {"metadata": {"name": "n1"}})
            await self.create(client, "web", takes=2)
            await self.create(client, "dns", "system-node-critical", takes=1)
            await self.create(client, "mesh", takes=2, sidecar=1)
            await self.create(client, "network", metadata=OF_DAEMON_SET, spec=NETWORK)
        await self.node.start()
        await self.node.stop()
        await asyncio.to_thread(self.write_kubeconfig)
        await self.node.start_agent(self.node.config)

    def write_kubeconfig(self):
        """Where kubeadm has the kubelet's, with the rights of the node alone."""
        config = yaml.safe_load(self.lab.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] |= {"as": "system:node:n1", "as-groups": ["system:nodes", "system:authenticated"]}
        path = self.node.logind.root / KUBELET_CONF.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(config))

    async def checkpoint(self):
        return await asyncio.to_thread((self.node.state / NAME).exists)

    async def standing(self):
        """What the Node says of the agent, written with the kubelet's identity."""
        with client_of(self.lab) as client:
            return read_standing((await client.get(NODES, "n1"))["metadata"].get("annotations"))

    async def drill(self):
        """Exit code, output and complaint of a rehearsal beside the agent, whose bus it finds by itself."""
        drill = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lastcall", "drill", f"--state-dir={self.node.state}", "-o", "json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(drill.communicate(), 60)
        return drill.returncode, out, err.decode()

    async def ends_in_order(self):
        node = self.node
        start = await node.logind.wait_for_start(seconds=120)
        for pod in ("web", "mesh"):
            assert node.when("dns", "TERM") >= node.when(pod, "exit"), "the critical phase comes last"
            assert node.when("network", "TERM") >= node.when(pod, "exit"), "the network plugin comes last in its phase"
        assert node.when("mesh-sidecar", "TERM") >= node.when("mesh", "exit"), "a sidecar outlives its app"
        assert start.at >= node.when("dns", "exit") - 0.02
        record = await node.over()
        assert {pod.name: pod.priority for pod in record.pods} == {
            "web": 0,
            "mesh": 0,
            "network": 0,
            "dns": 2_000_001_000,
        }
        assert {pod.outcome for pod in record.pods} == {PodOutcome.GRACEFUL}


@pytest.fixture
async def bound(lab, node):
    made = Bound(lab, node)
    await made.begin()
    return made


def rehearsed(drill):
    """The agent's own order, from the agent's own sources."""
    status = drill["shutdown"]["status"]
    assert (drill["shutdown"]["spec"]["mode"], status["outcome"], status["lockHeld"]) == ("Observe", "Completed", True)
    order = [(pod["name"], pod["phaseIndex"], pod["outcome"]) for pod in status["pods"]]
    assert sorted(order) == [("dns", 2, "Observed"), *((name, 0, "Observed") for name in ("mesh", "network", "web"))]
    assert drill["prioritySources"] == {f"default/{pod['name']}": "Watch" for pod in status["pods"]}
    found = {one["name"]: one["verdict"] for one in drill["checks"]}
    assert {name: found[name] for name in ("agent", "delay-limit", "runtime", "time")} == dict.fromkeys(
        ("agent", "delay-limit", "runtime", "time"), "ok"
    )
    assert found["traffic"] == "unknown", "the kubelet's identity may not read EndpointSlices"


async def test_priorities_and_sidecars_that_only_the_api_knows(bound):
    await bound.node.until(bound.checkpoint, "the first checkpoint")
    await bound.node.until(bound.standing, "the annotation of the Node")
    before = await bound.standing()
    assert (before.armed, before.mode, before.kubelet_lock) == (True, ShutdownMode.ENFORCE, False)
    assert before.granted_seconds >= before.requested_seconds > 0
    for code, out, err in await asyncio.gather(bound.drill(), bound.drill()):
        assert code == 0, (out, err)
        rehearsed(json.loads(out))
    assert not bound.node.records(), "a drill leaves no report"
    assert {saw.what for saw in bound.node.saw()} == {"start"}, "and ends nothing"
    await bound.node.logind.power_off()
    code, _, err = await bound.drill()
    assert (code, "the machine is shutting down" in err) == (1, True)
    await bound.ends_in_order()
    assert (await bound.standing()).armed, "nothing is written during a shutdown: the boot tells that it is old"


async def test_without_an_api_server_from_the_start_the_checkpoint_says_the_same(bound):
    await bound.node.until(bound.checkpoint, "the first checkpoint")
    await bound.node.until(bound.standing, "the annotation of the Node")
    await bound.node.stop()
    assert await bound.standing() is None, "an agent that ends takes it away"
    await asyncio.to_thread(bound.lab.end)
    await bound.node.start_agent(bound.node.config)

    async def told():
        return bool(re.search(r"watching pods: .*; again in", bound.node.log.read_text()))

    await bound.node.until(told, "the failure of the watch")
    await bound.node.logind.power_off()
    await bound.ends_in_order()
    assert await bound.checkpoint()


async def test_an_api_server_that_goes_away_takes_nothing_with_it(bound):
    await bound.node.until(bound.checkpoint, "the first checkpoint")
    await asyncio.to_thread(bound.lab.end)
    await bound.node.logind.power_off()
    await bound.ends_in_order()
