"""A cluster as kubectl tells of it, simulated: what ends in which phase is what ``lastcall plan`` says of the same pods."""

import json
import subprocess
import sys

import pytest
import yaml
from support.kube.kubectl import Kubectl
from support.lab.up_process import LabProcess

from lastcall_lab import virtual
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.recorded_cluster import state_file as states
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario_text.reader import read_scenario

pytestmark = pytest.mark.timeout(270)

KINDS = (
    "nodes,pods,pdb,priorityclasses,deployments,replicasets,statefulsets,daemonsets,jobs,services,endpointslices,"
    "pv,pvc,sc,volumeattachments"
)
AGENT = {
    "shutdownGracePeriodByPodPriority": [
        {"priority": 0, "shutdownGracePeriodSeconds": 30},
        {"priority": 1000, "shutdownGracePeriodSeconds": 20},
        {"priority": 2_000_000_000, "shutdownGracePeriodSeconds": 10},
    ]
}
SCENARIO = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "reboot"},
    "agent": AGENT,
    "timeline": {"1m": "reboot lab-2"},
    "lasts": "6m",
    "assume": {"requests": {"web": "5/s"}},
    "expect": ["every workload runs at the end"],
}
WORKS = 'trap "exit 0" TERM; while :; do sleep 1 & wait $!; done'


def workload(kind, name, replicas=3, **spec):
    container = {"name": "main", "image": "any", "command": ["sh", "-c", WORKS]}
    container |= {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "2"]}}}} if name == "web" else {}
    wanted = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}},
    }
    wanted |= {} if kind == "DaemonSet" else {"replicas": replicas}
    if kind == "StatefulSet":
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        wanted |= {"serviceName": name, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": wanted}


OBJECTS = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "gold"},
        "value": 1000,
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    workload("Deployment", "web"),
    workload("StatefulSet", "db", priorityClassName="gold"),
    workload("DaemonSet", "logs", priorityClassName="system-node-critical"),
]


@pytest.fixture
def lab(tmp_path):
    """One with three nodes, on which everything runs."""
    lab = LabProcess(tmp_path / "lab", "--nodes=3")
    try:
        lab.start()
        (tmp_path / "home").mkdir()
        use = Kubectl(lab.kubeconfig, tmp_path / "home")
        use("apply -f -", given={"apiVersion": "v1", "kind": "List", "items": OBJECTS})
        running = "get pods -o jsonpath={.items[*].status.containerStatuses[*].ready}"
        use.until(running, lambda said: said.split() == ["true"] * 9, seconds=120)
        yield lab
    finally:
        lab.end()


@pytest.fixture
def recorded(lab, tmp_path):
    """What kubectl tells of it."""
    path = tmp_path / "state.yaml"
    path.write_text(Kubectl(lab.kubeconfig, tmp_path / "home")(f"get {KINDS} -A -o yaml"))
    return path


def begun(data):
    """When the end of each pod on lab-2 began in the simulation, by the names of its containers' first orders to end."""
    state = states.read_state(data, "state.yaml")
    scenario = read_scenario(yaml.safe_dump(SCENARIO).encode(), "scenario.yaml", state)

    async def main():
        rehearsal = Rehearsal(scenario, 1)
        await rehearsal.run()
        return rehearsal, build_outcome(rehearsal)

    rehearsal, found = virtual.run(main())
    truth, times = rehearsal.cluster.truth, {}
    for one in truth.happenings:
        if one.node == "lab-2" and one.what in ("hook", "TERM") and one.at >= rehearsal.start:
            times.setdefault(truth.pods[one.uid].metadata.name, one.at)
    return state, found, times


def test_the_simulation_agrees_with_the_plan(recorded, tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text(yaml.safe_dump({"apiVersion": "lastcall.dev/v1alpha1", "kind": "AgentConfiguration", **AGENT}))
    plan = json.loads(said("plan", f"--config={config}", f"--pods={recorded}", "--node=lab-2", "--output=json").stdout)
    planned = [{pod["name"] for pod in phase["pods"]} for phase in plan["phases"] if phase["pods"]]
    state, found, times = begun(recorded.read_bytes())
    assert state.warnings == ()
    assert set().union(*planned) == set(times)
    assert len(planned) == 3
    for earlier, later in zip(planned, planned[1:], strict=False):
        assert max(times[name] for name in earlier) < min(times[name] for name in later)
    assert found.is_good
    assert {one.name: one.wanted for one in found.workloads} == {"db": 3, "web": 3, "logs": 3}
    assert 0 < found.workloads[0].pod_down < 120


def test_the_command(recorded, tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(SCENARIO))
    done = said("simulate", scenario, "--state", recorded)
    assert done.returncode == 0, done
    assert "every workload runs at the end" in done.stdout
    with_stdin = said("simulate", scenario, "--state", "-", given=recorded.read_text())
    assert with_stdin.stdout == done.stdout
    assert said("simulate", "-", "--state", "-", given="").returncode == 2
    missing = said("simulate", scenario, "--state", tmp_path / "nothing")
    assert (missing.returncode, "cannot be read" in missing.stderr) == (2, True)


def test_the_cluster_as_it_is(lab, recorded, tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(SCENARIO))
    live = said("simulate", scenario, "--from-cluster", "--kubeconfig", lab.kubeconfig)
    assert (live.returncode, live.stderr) == (0, "")
    assert live.stdout == said("simulate", scenario, "--state", recorded).stdout
    both = said("simulate", scenario, "--from-cluster", "--state", recorded)
    assert (both.returncode, "give one of them" in both.stderr) == (2, True)
    neither = said("simulate", scenario, "--kubeconfig", lab.kubeconfig)
    assert (neither.returncode, "--from-cluster" in neither.stderr) == (2, True)
    chance = said("simulate", "chaos", "--from-cluster", "--kubeconfig", lab.kubeconfig)
    assert (chance.returncode, "machines of its own" in chance.stderr) == (2, True)


def said(*arguments, given=""):
    command = [sys.executable, "-m", "lastcall", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
