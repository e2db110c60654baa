"""``kubectl lastcall status`` and ``drill`` against the lab's API server, and what a user without rights is told by all readers."""

import json
import os
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from support.kube.kubectl import Kubectl, items, lab, pod, rows  # noqa: F401  (fixtures)

from lastcall import names
from lastcall.manifests.daemon_set import agent_config_map, agent_labels
from lastcall.manifests.resource_definitions import node_shutdown_definition
from lastcall.manifests.viewer import viewer_role
from lastcall.model.agent_standing import AgentStanding, standing_annotations
from lastcall.model.shutdown import ShutdownMode

BIN = Path(sys.executable).parent
BOOT = "hollow"
"""The boot of the lab's nodes."""


class Plugin(Kubectl):
    """``kubectl lastcall`` as the administrator calls it."""

    def _command(self, line, more):
        return [BIN / "kubectl", "lastcall", *shlex.split(line), *map(str, more)]


def says(**fields):
    now = datetime.now(UTC)
    known = {"armed": True, "mode": ShutdownMode.ENFORCE, "message": "armed", "requested_seconds": 30.0}
    known |= {"granted_seconds": 30.0, "boot_id": BOOT, "version": "1", "reported": now}
    return standing_annotations(AgentStanding(**known | fields))[names.AGENT_STANDING]


def record(node, boot):
    now = datetime.now(UTC)
    status = {
        "state": "Returned",
        "outcome": "Completed",
        "startTime": (now - timedelta(hours=5)).isoformat(),
        "returnedTime": now.isoformat(),
        "pods": [{"namespace": "shop", "name": "slow", "uid": "u", "outcome": "Killed"}],
    }
    kind = {"apiVersion": names.API_VERSION, "kind": names.NODE_SHUTDOWN, "metadata": {"name": node}}
    return {**kind, "spec": {"nodeName": node, "bootID": boot}, "status": status}


@pytest.fixture(scope="module")
def cluster(lab):  # noqa: F811
    """An armed node in a pod that shut down well, one of systemd that has fallen silent, and one without an agent."""
    system = lab.kubectl(names.SYSTEM_NAMESPACE)
    lab.node("n2")
    lab.node("n3")
    agent = pod("lastcall-agent-a", labels=agent_labels(), containers=("agent",))
    agent["spec"]["containers"][0]["args"] = ["agent", "--container-runtime-endpoint=unix:///run/of-the-agent/cri.sock"]
    system("apply -f -", given=agent)
    system("wait --for=condition=Ready pod/lastcall-agent-a --timeout=60s")
    uid = system("get pod lastcall-agent-a -o jsonpath={.metadata.uid}")
    system("annotate node n1", f"{names.AGENT_STANDING}={says(pod_uid=uid)}")
    old = datetime.now(UTC) - timedelta(hours=1)
    system("annotate node n2", f"{names.AGENT_STANDING}={says(reported=old)}")
    system("create -f -", given=node_shutdown_definition())
    system("wait --for=condition=Established crd/nodeshutdowns.lastcall.dev --timeout=60s")
    system("create -f -", given=record("n1", "before"))
    system("create -f -", given=items(agent_config_map(names.SYSTEM_NAMESPACE), viewer_role({})))
    return lab


@pytest.fixture
def plugin(cluster, tmp_path):
    found = Plugin(cluster.kubeconfig, tmp_path)
    found.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    return found


def test_every_node_in_a_row(plugin):
    heading, *found = rows(plugin("status"))
    assert heading == ["NODE", "ARMED", "MODE", "REQUESTED", "GRANTED"] + ["LAST SHUTDOWN", "KILLED", "PROBLEMS"]
    assert found == [
        ["n1", "True", "Enforce", "30s", "30s", "Completed (5h ago)", "1", "<none>"],
        ["n2", "Unknown", *["<unknown>"] * 3, *["<none>"] * 2, found[1][-1]],
        ["n3", "Unknown", *["<unknown>"] * 3, *["<none>"] * 2, found[2][-1]],
    ]
    assert found[1][-1].startswith("its agent last reported 1h")
    assert found[2][-1] == "no agent is known: there is neither a pod nor a report of one"


def test_the_other_formats(plugin):
    document = json.loads(plugin("status n1 n3 -o json"))
    assert [one["name"] for one in document["nodes"]] == ["n1", "n3"]
    assert document["nodes"][0]["agent"] == "lastcall-agent-a"
    assert document["nodes"][0]["lastShutdown"]["killed"] == ["shop/slow"]
    assert document == yaml.safe_load(plugin("status n1 n3 -o yaml")) | {"nodes": document["nodes"]}
    assert plugin("status -o name") == "node/n1\nnode/n2\nnode/n3\n"
    assert "lastcall-agent-a" in plugin("status -o wide")


def test_a_node_that_does_not_exist_is_reported_as_kubectl_does(plugin):
    said = plugin.run("status n1 n9 -o name")
    assert said == ("node/n1\n", 'kubectl lastcall: nodes "n9" not found\n', 1)


@pytest.mark.parametrize("line", ["status", "drill", "report --node", "doctor --node"])
def test_the_tab_key_completes_nodes(plugin, line):
    kubectl = Kubectl(plugin.environment["KUBECONFIG"], Path(plugin.environment["HOME"]), program=BIN / "kubectl")
    kubectl._command = lambda line, more: [BIN / "kubectl", *line.split(" "), *map(str, more)]
    offered = kubectl(f"__complete lastcall {line} n1", PATH=plugin.environment["PATH"]).splitlines()
    assert (offered[0], offered[-1]) == ("n1", ":4")


def as_user(plugin, name, path):
    document = yaml.safe_load(Path(plugin.environment["KUBECONFIG"]).read_text())
    for user in document["users"]:
        user["user"]["as"] = name
    path.write_text(yaml.safe_dump(document))
    found = Plugin(path, path.parent)
    found.environment["PATH"] = plugin.environment["PATH"]
    return found


READERS = {
    "status": ("list", "nodes"),
    "status n1": ("get", "nodes"),
    "plan --node n1": ("list", "pods"),
    "failover explain n1": ("list", "nodes"),
    "simulate rolling-reboot --from-cluster": ("list", "namespaces"),
}
"""What the commands that read a cluster are refused first."""

HINT = "permit it by: kubectl "


def test_who_may_not_read_is_told_what_is_missing_and_what_permits_it(plugin, tmp_path):
    """The grants that the messages name are carried out: with them the commands work."""
    jane, admin, granted = (
        as_user(plugin, "jane", tmp_path / "jane"),
        Kubectl(plugin.environment["KUBECONFIG"], tmp_path),
        [],
    )
    for line, (verb, resource) in READERS.items():
        said = jane.fails(line)
        assert f'User "jane" cannot {verb} resource "{resource}" in API group ""' in said
        assert f"{HINT}create clusterrolebinding lastcall-viewer --clusterrole=lastcall-viewer --user=jane" in said
    for line in [one for one in READERS if "simulate" not in one]:  # its kinds: test_refusals.py
        while HINT in (said := jane.run(line).err):
            grant = said.partition(HINT)[2].splitlines()[0]
            assert grant not in granted, said
            granted.append(grant)
            admin(grant)
        assert "forbidden" not in said
    assert granted[1:] == [
        "create rolebinding lastcall-viewer --clusterrole=view --user=jane --namespace=lastcall-system"
    ]


def test_what_is_not_known_without_rights_is_a_warning(plugin, tmp_path):
    admin = Kubectl(plugin.environment["KUBECONFIG"], tmp_path)
    admin("create clusterrole nodes-alone --verb=list --resource=nodes")
    admin("create clusterrolebinding bob --clusterrole=nodes-alone --user=bob")
    said = as_user(plugin, "bob", tmp_path / "bob").run("status")
    assert said.code == 0
    assert rows(said.out)[1][:2] == ["n1", "True"], "its own word is on the Node"
    assert [line.partition(": ")[2].partition(":")[0] for line in said.err.splitlines()] == ["not known"] * 2


# -- a drill in the agent's pod ----------------------------------------------------------------------------------------


def test_what_runs_on_a_node_runs_in_the_agents_pod(plugin):
    """By the real kubectl exec. The lab's node runs the program on this machine, where no agent runs."""
    said = plugin.run("drill n1")
    assert said.code == 1
    assert "lastcall: no agent runs with the state directory /var/lib/lastcall: a drill needs a running one" in said.err
    assert "lastcall: /var/lib/lastcall: no shutdown was journalled there yet" in plugin.fails("report --node n1")
    assert plugin("report --node n1 --list") == ""
    doctor = plugin.run("doctor --node n1 -o json")
    [runtime] = [one for one in json.loads(doctor.out)["checks"] if one["name"] == "runtime"]
    assert "/run/of-the-agent/cri.sock" in runtime["message"], "the agent's own"


NO_POD = "no pod of an agent runs on node n2: if systemd runs its agent, run"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("drill n2", 1, f"{NO_POD} `sudo lastcall drill` on the node"),
        ("drill n9", 2, 'NODE: "n9": there is no such node'),
        (
            "report --node n2",
            1,
            f"{NO_POD} `sudo lastcall report` on the node; its last shutdown is in `kubectl get nodeshutdown n2 -o yaml`",
        ),
    ],
)
def test_without_a_pod_it_says_how_to_do_it(plugin, line, code, said):
    assert plugin.fails(line, code=code) == f"kubectl lastcall: {said}\n"


def test_who_may_not_exec_is_told_what_that_right_means(plugin, tmp_path):
    admin = Kubectl(plugin.environment["KUBECONFIG"], tmp_path)
    anna = as_user(plugin, "anna", tmp_path / "anna")
    assert f"{HINT}create clusterrolebinding" in anna.fails("drill n1")
    admin("create clusterrolebinding anna --clusterrole=lastcall-viewer --user=anna")
    said = anna.fails("drill n1")
    assert 'User "anna" cannot ' in said
    assert 'resource "pods/exec" in API group "" in the namespace "lastcall-system"' in said
    assert "whoever may run commands in an agent's pod is root on its node" in said


def test_a_drill_without_kubectl_says_so(plugin):
    plugin._command = lambda line, more: [BIN / "lastcall", *shlex.split(line), *map(str, more)]
    assert "kubectl is not on the PATH" in plugin.fails("drill n1", PATH="/nowhere")


@pytest.mark.parametrize("line", ["report --context c", "drill --context c", "doctor --context c"])
def test_a_cluster_without_a_node_is_a_mistake(plugin, line):
    assert "it is not given" in plugin.fails(line, code=2)
