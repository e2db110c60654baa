"""``lastcall simulate``."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from lastcall.errors import InvalidInput
from lastcall_lab.cli.simulate import command
from lastcall_lab.simulation.shipped_scenarios import shipped_scenarios

SMALL = """
apiVersion: lastcall.dev/v1alpha1
kind: Scenario
metadata: {name: small}
nodes: 1
workloads: [{deployment: web}]
timeline: {1s: reboot node-1 for 5s}
bootsIn: 5s
lasts: 2m
expect: [web runs at the end]
"""

BREAKS = """
apiVersion: lastcall.dev/v1alpha1
kind: Scenario
metadata: {name: breaks}
nodes: 1
workloads: [{deployment: web, endsIn: 10s}, {statefulSet: db}]
shutdownManager: kubelet
timeline: {1s: reboot node-1 for 5s, 4s: kill the agent of node-1 for 1s, 30s: compact the history}
bootsIn: 5s
lasts: 2m
"""
"""A kubelet that dies lets the lock go."""


def run(*arguments, text=None):
    return CliRunner().invoke(command, list(arguments), input=text, catch_exceptions=False)


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


def test_what_comes_with_lastcall_is_listed():
    said = run("--list")
    assert said.exit_code == 0
    assert [line.split()[0] for line in said.output.splitlines()] == [
        *shipped_scenarios(),
        "chaos",
        "failover-chaos",
        "kubelet-chaos",
        "drain-chaos",
    ]


def test_a_file_is_played(small):
    said = run(small)
    assert said.exit_code == 0
    assert said.output.startswith("small, seed 1: what was expected holds\n")


def test_from_standard_input_as_json():
    said = run("-", "--seed", "3", "-o", "json", text=SMALL)
    assert said.exit_code == 0
    told = json.loads(said.output)
    assert (told["scenario"], told["seed"], told["good"]) == ("small", "3", True)


def test_as_a_page(small):
    assert run(small, "-o", "html").output.startswith("<!DOCTYPE html>")


def test_the_same_seed_says_the_same(small):
    assert run(small, "--seed", "5", "-o", "json").output == run(small, "--seed", "5", "-o", "json").output


def test_a_broken_expectation_is_exit_code_1():
    said = run("-", text=SMALL.replace("web runs at the end", "web is never down"))
    assert said.exit_code == 1
    assert "  NO   web is never down: " in said.output


@pytest.mark.timeout(270)
def test_many_seeds_in_their_order_in_processes_of_their_own(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("web runs at the end", "web is never down"))
    said = run(str(path), "--seeds", "3")
    assert said.exit_code == 1
    *lines, last = said.output.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["seed 1", "seed 2", "seed 3"]
    assert last == "small: 3 seeds, 3 failed; --seed 1 shows the first"


@pytest.mark.timeout(270)
def test_many_seeds_as_json(small):
    said = run(small, "--seeds", "2", "-o", "json")
    assert said.exit_code == 0
    assert json.loads(said.output) == {
        "scenario": "small",
        "seeds": 2,
        "failures": 0,
        "failed": [],
        "faults": [{"kind": "reboot", "count": 2, "seeds": 2, "steps": {"at rest": 2}}],
        "neverStruck": [],
    }


@pytest.mark.timeout(270)
def test_seeds_from_one_on(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("web runs at the end", "web is never down"))
    *lines, _ = run(str(path), "--seed", "7", "--seeds", "2").output.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["seed 7", "seed 8"]


@pytest.mark.timeout(270)
def test_chance_tells_which_faults_struck():
    said = run("chaos", "--seeds", "2")
    assert "chaos: 2 seeds" in said.output
    assert "Faults that struck in 2 seeds" in said.output
    assert "  never: " in said.output


@pytest.mark.timeout(270)
def test_the_shortest_scenario_can_be_played_again(tmp_path):
    path, short = tmp_path / "small.yaml", tmp_path / "short.yaml"
    path.write_text(BREAKS)
    said = run(str(path), "--seed", "3", "--shrink")
    assert said.exit_code == 1
    assert "# the lock is held when the machine goes down: lastcall simulate FILE --seed 3\n" in said.output
    assert "statefulSet" not in said.output
    short.write_text(said.output)
    assert "  ! " in run(str(short), "--seed", "3").output


def test_nothing_to_shrink(small):
    from lastcall.errors import LastcallError

    with pytest.raises(LastcallError, match="nothing that must never happen has happened with seed 1"):
        run(small, "--shrink")


@pytest.mark.parametrize(
    "arguments", [(), ("x", "--seeds", "2", "-o", "html"), ("x", "--shrink", "--seeds", "2"), ("chaos", "--state", "x")]
)
def test_wrong_usage(arguments):
    assert run(*arguments).exit_code == 2


def test_a_name_that_is_neither_file_nor_scenario():
    with pytest.raises(
        InvalidInput, match=r"SCENARIO: storrm: neither a file nor one of the shipped scenarios, api-server"
    ):
        run("storrm")


def test_a_directory_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        run(str(tmp_path))


def test_what_the_api_server_refuses():
    wrong = SMALL + "objects: [{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: Odd}}]"
    with pytest.raises(InvalidInput, match="the API server refuses it"):
        run("-", text=wrong)


@pytest.mark.timeout(270)
def test_what_does_not_fit_is_told():
    from lastcall.errors import LastcallError

    with pytest.raises(LastcallError, match=r"small: not everything comes up: pod web-.* is not ready \(0/1 nodes"):
        run("-", text=SMALL.replace("web}", "web, cpu: 99}"))


def test_namespaces_and_labels_that_only_an_administrator_sets():
    """Also those that no kubelet may put on its own node: ``NodeRestriction``."""
    inside = SMALL.replace("web}", "web, namespace: shop}").replace(
        "nodes: 1", "nodes: [{count: 1, labels: {node-role.kubernetes.io/worker: ''}}]"
    )
    assert "namespace: shop" in inside
    assert "node-role" in inside
    assert run("-", text=inside).exit_code == 0


def test_what_the_programs_of_a_rehearsal_log_is_not_printed():
    """In seed 27 a node's kubelet gets errors from the API server, which it logs."""
    command_line = [sys.executable, "-m", "lastcall", "simulate", "chaos", "--seed", "27"]
    assert subprocess.run(command_line, check=True, capture_output=True, text=True, timeout=100).stderr == ""
