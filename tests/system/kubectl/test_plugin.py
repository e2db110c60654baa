"""``kubectl lastcall``: the real kubectl runs the command line as its plugin, and completes it."""

import json
import os
import sys
from pathlib import Path

import pytest
from support.kube.kubectl import Kubectl

BIN = Path(sys.executable).parent
CONFIG = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\n"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
}


class Plugin(Kubectl):
    """kubectl without options before the plugin's name, which it forbids; no cluster is asked."""

    def _command(self, line, more):
        return [BIN / "kubectl", *line.split(" "), *map(str, more)]


@pytest.fixture
def kubectl(tmp_path):
    kubectl = Plugin(tmp_path / "kubeconfig", tmp_path)
    kubectl.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    return kubectl


def test_it_is_a_plugin_with_the_name_of_one(kubectl):
    assert "kubectl-lastcall\n" in kubectl("plugin list")
    assert kubectl("lastcall --help").startswith("Usage: kubectl lastcall [OPTIONS] COMMAND")
    assert kubectl("lastcall failover plan --help").startswith("Usage: kubectl lastcall failover plan [OPTIONS]")


def test_it_does_what_the_program_does(kubectl, tmp_path):
    (tmp_path / "agent.yaml").write_text(CONFIG)
    (tmp_path / "pods.json").write_text(json.dumps(POD))
    line = f"plan --config {tmp_path}/agent.yaml --pods {tmp_path}/pods.json -o json"
    plan = json.loads(kubectl(f"lastcall {line}"))
    assert [pod["name"] for phase in plan["phases"] for pod in phase["pods"]] == ["web"]
    said = kubectl.fails(f"lastcall plan --config {tmp_path}/pods.json --pods {tmp_path}/pods.json", code=2)
    assert said.startswith("kubectl lastcall: ")


@pytest.mark.parametrize(
    ("words", "offered", "directive"),
    [
        (["pl"], {"plan"}, ":4"),
        (["failover", ""], {"acknowledge", "explain", "plan"}, ":4"),
        (["plan", "--out"], {"--output"}, ":4"),
        (["plan", "--output", ""], {"table", "json"}, ":4"),
        (["plan", "--config", ""], set(), ":0"),
        (["agent", "--state-dir", ""], set(), ":0"),
        (["lab", "node", "--manifests", ""], set(), ":16"),
    ],
)
def test_the_tab_key_completes_it(kubectl, words, offered, directive):
    *lines, last = kubectl("__complete lastcall", *words).splitlines()
    assert ({one.partition("\t")[0] for one in lines}, last) == (offered, directive)


def test_words_are_offered_with_their_help(kubectl):
    assert "plan\tWhich pods would be ended when" in kubectl("__complete lastcall", "pl")
