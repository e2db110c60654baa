"""``lastcall plan`` as it is called: streams and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lastcall.cli import main as entry
from lastcall.cli.plan import command
from lastcall.errors import InvalidInput

CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
"""

PODS = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: shop}
  spec:
    nodeName: n1
    priority: 0
    terminationGracePeriodSeconds: 60
    containers: [{name: nginx, lifecycle: {preStop: {sleep: {seconds: 15}}}}]
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata: {name: coredns-5d78c9869d-abcde, namespace: kube-system}
  spec:
    nodeName: n2
    priorityClassName: system-cluster-critical
    containers: [{name: coredns, lifecycle: {preStop: {exec: {command: [stop]}}}}]
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata: {name: batch, namespace: shop}
  spec: {nodeName: n1, priority: -1, terminationGracePeriodSeconds: 0, containers: [{name: c}]}
  status: {phase: Succeeded}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "pods.yaml").write_text(PODS)
    return ["--config", str(tmp_path / "config.yaml"), "--pods", str(tmp_path / "pods.yaml")]


def run(args, stdin=None):
    return CliRunner().invoke(command, args, input=stdin)


def test_json_alone_is_on_standard_output(files):
    result = run([*files, "-o", "json"])
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["enabled"] is True
    assert document["totalSeconds"] == 30
    assert [[pod["name"] for pod in phase["pods"]] for phase in document["phases"]] == [
        ["web"],
        ["coredns-5d78c9869d-abcde"],
    ]
    assert document["warnings"] == ["the pods of 2 nodes count as one node's: n1, n2; --node chooses one"]


def test_a_node_and_a_grant(files):
    result = run([*files, "-o", "json", "--node", "n1", "--granted", "15500ms"])
    document = json.loads(result.stdout)
    assert [phase["seconds"] for phase in document["phases"]] == [5, 10]
    assert [phase["pods"] for phase in document["phases"]] == [
        [
            {
                "namespace": "shop",
                "name": "web",
                "priority": 0,
                "gracePeriodSeconds": 5,
                "notes": [
                    "cut short: asks for 60 s, gets 5 s",
                    "preStop of nginx sleeps 15 s: cut off after 3 s, 2 s are left for SIGTERM",
                ],
            }
        ],
        [],
    ]


@pytest.mark.parametrize("granted", ["infinity", "30s", "0.5m", "1h"])
def test_granted_enough_changes_nothing(files, granted):
    assert run([*files, "-o", "json", "--granted", granted]).stdout == run([*files, "-o", "json"]).stdout


@pytest.mark.parametrize("granted", ["0", "0s", "-0"])
def test_granted_nothing(files, granted):
    document = json.loads(run([*files, "-o", "json", "--granted", granted]).stdout)
    assert document["totalSeconds"] == 0
    assert document["enabled"] is True


@pytest.mark.parametrize("option", ["--config", "--pods"])
def test_either_file_may_be_standard_input(files, option, tmp_path):
    text = CONFIG if option == "--config" else PODS
    args = [*files, "-o", "json"]
    args[args.index(option) + 1] = "-"
    assert run(args, stdin=text).stdout == run([*files, "-o", "json"]).stdout


def test_disabled_is_a_plan_too(files):
    text = CONFIG.replace("30s", "0s").replace("10s", "0s")
    result = run(["--config", "-", *files[2:], "-o", "json"], stdin=text)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"enabled": False, "totalSeconds": 0, "phases": [], "warnings": []}
    table = run(["--config", "-", *files[2:]], stdin=text)
    assert table.exit_code == 0
    assert table.stdout == "Graceful shutdown is disabled: all pods would be cut off at once.\n"


def test_warnings_of_all_sources_are_in_the_document(files):
    config = files[1]
    Path(config).write_text(CONFIG.replace("10s", "0s"))
    pods = PODS + "- kind: Service\n"
    result = run(["--config", config, "--pods", "-", "-o", "json", "--node", "n1"], stdin=pods)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["warnings"] == [
        "shutdownGracePeriodCriticalPods: 0s: pods of priority 2000000000 and above get no time to end in",
        "standard input: 1 Service passed over: only pods count",
    ]


TABLE = """\
At most 30s in 2 phases.

Phase 1: priority 0 and above, 20s, begins at once
   pod                                            priority  asks  gets  SIGTERM
   shop/web                                              0  60 s  20 s      5 s
     cut short: asks for 60 s, gets 20 s
     preStop of nginx sleeps 15 s: 5 s are left
     for SIGTERM

Phase 2: priority 2000000000 and above, 10s, begins at +20s at the latest
   pod                                            priority  asks  gets  SIGTERM
   kube-system/coredns-5d78c9869d-abcde         2000000000     -  10 s  unknown
     preStop of coredns (exec) takes an
     unknown part of the 10 s from SIGTERM
     priority 2000000000 by the class name
     system-cluster-critical alone; the
     kubelet would count it as 0

warning: the pods of 2 nodes count as one node's: n1, n2; --node chooses one
"""


def test_the_table_at_eighty_columns_without_a_terminal(files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run(files)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == TABLE


@pytest.mark.parametrize("columns", ["60", "200"])
def test_the_table_at_other_widths(files, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(files).stdout.splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert "coredns" in "".join(lines)


def test_a_phase_without_pods(files):
    result = run([*files, "--node", "n1"])
    assert "  no pods: passed over at once" in result.stdout.splitlines()


USAGE = [
    ([], "Missing option '--pods' or '--node'"),
    (["--config", "x"], "Missing option '--pods' or '--node'"),
    (["--pods", "x", "--node", "n1"], "Missing option '--config'"),
    (["--config", "x", "--pods", "y", "--context", "z"], "--pods asks no cluster"),
    (["--config", "x", "--pods", "y", "--kubeconfig", "z"], "--pods asks no cluster"),
    (["--config", "-", "--pods", "-"], "only one of --config and --pods can be standard input"),
    (["--config", "x", "--pods", "y", "--granted", "5"], ': missing unit in duration "5"; expected a duration such as'),
    (["--config", "x", "--pods", "y", "--granted", "-5s"], "-5s must not be negative"),
    (
        ["--config", "x", "--pods", "y", "--granted", "inf"],
        ': invalid duration "inf"; expected a duration such as "30s", or "infinity"',
    ),
    (["--config", "x", "--pods", "y", "-o", "yaml"], "'yaml' is not one of 'table', 'json'"),
    (["--config", "x", "--pods", "y", "z"], "unexpected extra argument"),
]


@pytest.mark.parametrize(("args", "text"), USAGE, ids=range(len(USAGE)))
def test_wrong_usage(args, text):
    result = run(args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr


@pytest.mark.parametrize(("path", "reason"), [("/no/such/file", "No such file or directory"), ("/", "Is a directory")])
@pytest.mark.parametrize("option", [1, 3])
def test_a_file_that_cannot_be_read_is_named(files, option, path, reason):
    files[option] = path
    result = run(files)
    assert result.stdout == ""
    assert isinstance(result.exception, InvalidInput)
    assert str(result.exception) == f"{path}: cannot be read: {reason}"


def test_every_violation_is_on_standard_error(files, monkeypatch, capsys):
    items = "[{priority: x}, {priority: 1, shutdownGracePeriodSeconds: -2}]"
    Path(files[1]).write_text(f"{CONFIG}shutdownGracePeriodByPodPriority: {items}\n")
    monkeypatch.setattr(sys, "argv", ["lastcall", "plan", *files])
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    assert exit_.value.code == 2
    out, err = capsys.readouterr()
    at = f"{files[1]}: shutdownGracePeriodByPodPriority"
    assert out == ""
    assert err.splitlines() == [
        f'lastcall: {at}[0].priority: "x": must be an integer, not text',
        (
            f"{files[1]}: invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and "
            "shutdownGracePeriod at the same time"
        ),
        f"{at}[1].shutdownGracePeriodSeconds: -2: must not be negative",
    ]


def spawn(*args, stdin=""):
    return subprocess.run(
        [sys.executable, "-m", "lastcall", "plan", *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_real_command(files):
    done = spawn(*files, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["totalSeconds"] == 30

    done = spawn(*files[:2], "--pods", "-", "-o", "json", stdin='{"kind": "List", "items": [7]}')
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lastcall: standard input: items[0]: 7: must be a mapping of kind Pod\n"

    done = spawn(*files[:2], "--pods", "/no/such/file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lastcall: /no/such/file: cannot be read: No such file or directory\n"
