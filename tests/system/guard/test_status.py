"""``kubectl lastcall guard status`` by the real kubectl and its plugin mechanism: what is held, why, how far, by whom."""

import json
import os
import sys
from pathlib import Path

import pytest
from support.guard.guarded_jobs import GuardedJobs, wait
from support.kube.kubectl import Kubectl

BIN = Path(sys.executable).parent
pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("guard-status")]


class Plugin(Kubectl):
    """kubectl forbids options before the plugin's name."""

    def _command(self, line, more):
        return [BIN / "kubectl", *line.split(), *map(str, more)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with GuardedJobs(tmp_path_factory.mktemp("jobs")).running() as cluster:
        yield cluster


@pytest.fixture
def status(cluster, tmp_path):
    """``kubectl lastcall guard status`` with more words."""
    kubectl = Plugin(cluster.lab.kubeconfig, tmp_path)
    kubectl.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    return lambda *words: kubectl.run("lastcall guard status", *words)


def test_from_nothing_to_a_held_pod_and_back(cluster, status):
    assert status() == ("", "No pods are held\n", 0)
    assert status("jobs-0") == ("", "Pod jobs-0 is not held\n", 0)
    assert json.loads(status("jobs-0", "-o", "json").out) == {"pods": []}

    assert "TooManyRequests" in cluster.kubectl("delete pod jobs-0 --wait=false")
    wait(lambda: "moves its jobs" in status().out, "progress")
    heading, row = status("jobs-0").out.splitlines()
    assert heading.split() == [
        "NAMESPACE",
        "POD",
        "STATE",
        "DONE",
        "LEFT",
        "HELD",
        "POLICY",
        "REQUESTED",
        "BY",
        "MESSAGE",
    ]
    [held] = json.loads(status("-o", "json").out)["pods"]
    told = ["default", "jobs-0", "Preparing", "40%", "<none>", "jobs", held["requestedBy"], "moves", "its", "jobs"]
    assert [one for one in row.split() if not one[0].isdigit() or one.endswith("%")] == told, "but for its age"
    assert held["requestedBy"], "the user of the kubeconfig"
    assert (held["namespace"], held["name"], held["policy"], held["state"]) == (
        "default",
        "jobs-0",
        "jobs",
        "Preparing",
    )
    assert held["since"] == cluster.read("guardpolicy jobs")["status"]["pods"][0]["since"]
    assert status("-n", "kube-system").err == "No pods are held\n"

    (cluster.books / "ready").touch()
    wait(lambda: " Ready " in status("jobs-0").out, "readiness")


@pytest.mark.parametrize(
    ("words", "where"),
    [(["nobody"], "in any namespace"), (["jobs-0", "-n", "kube-system"], "in namespace kube-system")],
)
def test_a_pod_that_does_not_exist_is_an_error(status, words, where):
    said = status(*words)
    assert (said.out, said.err, said.code) == ("", f'kubectl lastcall: there is no pod "{words[0]}" {where}\n', 1)


def test_a_cluster_that_is_not_there_and_a_word_that_means_nothing_are_errors(status, tmp_path):
    said = status("--kubeconfig", tmp_path / "missing")
    assert (said.out, said.code) == ("", 2)
    assert said.err.startswith("kubectl lastcall: ")
    assert status("--nothing").code == 2


def test_a_cluster_without_a_guard_is_told_as_such(cluster, status):
    assert "deleted" in cluster.kubectl("delete crd guardpolicies.lastcall.dev")
    wait(lambda: status().code == 1, "end of the kind")
    assert status().err == "kubectl lastcall: the cluster has no GuardPolicies: no guard is installed\n"
