"""The shop that ``lastcall demo`` runs: what a cluster's workloads are like, and one object does not go without another."""

import importlib.resources
from collections import defaultdict

import pytest
import yaml


@pytest.fixture
def shop():
    """Its objects by their kinds."""
    found = defaultdict(list)
    for file in importlib.resources.files("lastcall_lab.demo").joinpath("objects").iterdir():
        for one in yaml.safe_load_all(file.read_text()):
            found[one["kind"]].append(one)
    return found


def test_what_there_is(shop):
    kinds = {"Deployment", "StatefulSet", "DaemonSet", "Service", "PodDisruptionBudget", "PriorityClass"}
    assert kinds <= set(shop)
    assert len(shop["DaemonSet"]) == 2
    assert [one["metadata"]["name"] for one in shop["StatefulSet"][0]["spec"]["volumeClaimTemplates"]] == ["data"]


def test_the_budget_and_the_service_are_of_the_web_servers(shop):
    [web] = [one for one in shop["Deployment"] if one["metadata"]["name"] == "web"]
    [service] = [one for one in shop["Service"] if one["metadata"]["name"] == "web"]
    [budget] = shop["PodDisruptionBudget"]
    labels = web["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert 0 < budget["spec"]["minAvailable"] < web["spec"]["replicas"], "it protects, and lets one go"


def test_classes_that_are_named_are_there(shop):
    known = {one["metadata"]["name"] for one in shop["PriorityClass"]} | {
        "system-node-critical",
        "system-cluster-critical",
    }
    workloads = shop["Deployment"] + shop["StatefulSet"] + shop["DaemonSet"]
    named = {one["spec"]["template"]["spec"].get("priorityClassName") for one in workloads} - {None}
    assert named <= known
    assert len(named) > 1
