"""``lastcall drain --plan`` as it is called: the document, the table, streams, exit codes, what is wrong with a file."""

import json

import pytest
from click.testing import CliRunner
from support.drain.objects import node_object, owned_object, owner_reference, pod_object
from support.drain.plans import budget_object, case_of, list_of, workload_object

from lastcall.cli.drain import command
from lastcall.cli.drain_run import print_missing_room
from lastcall.errors import InvalidInput

NOW = ["--now", "2026-01-01T12:00:00Z"]
KARPENTER = "karpenter.sh/do-not-disrupt"
CRITICAL = 2_000_000_000


def daemon_object(name):
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "kube-system"}}


CLUSTER = [
    node_object("n1", labels={"pool": "a"}, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}),
    node_object("n2", labels={"pool": "a"}, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}),
    node_object("n3", labels={"pool": "b"}, annotations={KARPENTER: "true"}),
    daemon_object("agents"),
    pod_object("agent-1", namespace="kube-system", owner=owner_reference("DaemonSet", "agents")),
    pod_object("apiserver-n1", namespace="kube-system", annotations={"kubernetes.io/config.mirror": "x"}),
    owned_object("coredns-1", namespace="kube-system", labels={"k8s-app": "kube-dns"}, priority=CRITICAL),
    owned_object("csi-1", namespace="storage", image="sig-storage/csi-attacher:v4", priority=1000, grace=10),
    owned_object("web-1", namespace="shop", labels={"app": "web"}, priority=100, owner="web"),
    owned_object("web-2", namespace="shop", labels={"app": "web"}, priority=100, owner="web"),
    owned_object("web-3", namespace="shop", labels={"app": "web"}, priority=100, owner="web", node="n2"),
    owned_object("db-0", namespace="shop", labels={"app": "db"}, kind="StatefulSet", owner="db", grace=60),
    owned_object("cache-1", namespace="shop", owner="cache", volumes=[{"name": "c", "emptyDir": {}}]),
    owned_object("batch-1", namespace="shop", annotations={KARPENTER: "true"}, owner="batch"),
    owned_object("stays-1", namespace="shop", labels={"cluster.x-k8s.io/drain": "skip"}),
    pod_object("debug", namespace="shop"),
    budget_object("web", namespace="shop", allowed=1, healthy=3, desired=2, expected=3, spec={"minAvailable": 2}),
    budget_object("db", namespace="shop", selector={"matchLabels": {"app": "db"}}),
    workload_object("StatefulSet", "db", namespace="shop"),
]

DOCUMENT = {
    "nodes": ["n1"],
    "evict": [
        [
            {"namespace": "shop", "name": "batch-1"},
            {"namespace": "shop", "name": "cache-1"},
            {"namespace": "shop", "name": "db-0"},
            {"namespace": "shop", "name": "debug"},
        ],
        [{"namespace": "shop", "name": "web-1"}, {"namespace": "shop", "name": "web-2"}],
        [{"namespace": "storage", "name": "csi-1"}],
        [{"namespace": "kube-system", "name": "coredns-1"}],
    ],
    "skip": [
        {
            "namespace": "kube-system",
            "name": "apiserver-n1",
            "why": "ignoring mirror Pods, which cannot be deleted through the API server",
        },
        {
            "namespace": "shop",
            "name": "stays-1",
            "why": "label cluster.x-k8s.io/drain: skip, of Cluster API, leaves it on its node",
        },
    ],
    "refuse": [
        {
            "namespace": "kube-system",
            "name": "agent-1",
            "why": "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)",
            "mend": "--ignore-daemonsets",
        },
        {
            "namespace": "shop",
            "name": "cache-1",
            "why": "Pods with local storage (use --delete-emptydir-data to override)",
            "mend": "--delete-emptydir-data",
        },
        {
            "namespace": "shop",
            "name": "debug",
            "why": "cannot delete Pods that declare no controller (use --force to override)",
            "mend": "--force",
        },
    ],
    "blocked": [
        {
            "by": {"kind": "Pod", "namespace": "shop", "name": "batch-1"},
            "pods": [{"namespace": "shop", "name": "batch-1"}],
            "why": "annotation karpenter.sh/do-not-disrupt: true keeps Karpenter from disrupting the pod",
            "mend": "--ignore-opt-outs",
        },
        {
            "by": {"kind": "PodDisruptionBudget", "namespace": "shop", "name": "db"},
            "pods": [{"namespace": "shop", "name": "db-0"}],
            "why": "The disruption budget db needs 1 healthy pods and has 1 currently: it can never allow a disruption: "
            "minAvailable 1 of 1 pod",
            "mend": "raise the replicas of StatefulSet shop/db to 2, or change the budget so that it allows one disruption",
        },
    ],
    "etaSeconds": 60 + (30 + 30 + 30) + 10 + 30,
}

ALL = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--ignore-opt-outs", "--disable-eviction"]


@pytest.fixture(autouse=True)
def whole_lines(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


def run(*options, objects=CLUSTER, stdin=None):
    arguments = ["--plan", "--state", "-", *NOW, *options]
    return CliRunner().invoke(command, arguments, input=list_of(*objects) if stdin is None else stdin)


def document(*options, code=0, **more):
    result = run("-o", "json", *options, **more)
    assert result.exit_code == code, result
    return json.loads(result.stdout)


def wrong(*options, **more):
    result = run(*options, **more)
    assert isinstance(result.exception, InvalidInput), result
    assert result.exception.exit_code == 2
    return str(result.exception)


def test_the_whole_document():
    found = document("n1", code=1)
    assert found == DOCUMENT
    assert list(found) == list(DOCUMENT)


def test_with_every_mend_nothing_stands_in_the_way():
    found = document("n1", *ALL)
    assert (found["refuse"], found["blocked"]) == ([], [])
    assert found["evict"] == DOCUMENT["evict"]
    assert [one["name"] for one in found["skip"]] == ["agent-1", "apiserver-n1", "stays-1"]
    assert found["etaSeconds"] == 60 + 30 + 10 + 30


def test_blocked_alone_and_refused_alone_are_no_success():
    assert document("n1", *ALL[:3], code=1)["refuse"] == []
    assert document("n1", *ALL[1:], code=1)["blocked"] == []


def test_an_empty_node_is_clear():
    assert document("n2", "--pod-selector", "app=none") == {
        "nodes": ["n2"],
        "evict": [],
        "skip": [],
        "refuse": [],
        "blocked": [],
        "etaSeconds": 0,
    }


def test_several_nodes_are_one_plan_in_the_order_given():
    found = document("n2", "node/n1", "n2", *ALL)
    assert found["nodes"] == ["n2", "n1"]
    assert [one["name"] for one in found["evict"][1]] == ["web-1", "web-2", "web-3"]


def test_a_selector_chooses_nodes_by_name():
    assert document("-l", "pool in (b,a),pool!=b", *ALL)["nodes"] == ["n1", "n2"]
    assert document("--selector", "pool=none")["nodes"] == []
    assert run("-l", "pool=none").stderr == "No resources found\n"


def test_a_selector_chooses_pods():
    found = document("n1", "--pod-selector", "app=web")
    assert found["evict"] == DOCUMENT["evict"][1:2]
    assert found["skip"] == []


def test_the_grace_period():
    assert document("n1", *ALL, "--grace-period", "5")["etaSeconds"] == 4 * 5
    assert document("n1", *ALL, "--grace-period=-1")["etaSeconds"] == 60 + 30 + 10 + 30


def test_pods_that_have_been_deleted_for_long():
    pods = [node_object("n1"), owned_object(deletion="2026-01-01T11:59:00Z")]
    assert document("n1", objects=pods)["skip"] == []
    [passed] = document("n1", "--skip-wait-for-delete-timeout", "59", objects=pods)["skip"]
    assert passed["why"] == 'pod "p" has DeletionTimestamp older than 59 seconds, skipping'


def test_notes_are_warnings_beside_the_document():
    result = run("n1", "-o", "json", *ALL)
    assert result.exit_code == 0
    assert "warning: the emptyDir data is lost of: shop/cache-1 (copy what is needed first)\n" in result.stderr
    assert "warning: nothing makes these pods again: shop/debug" in result.stderr


def test_notes_are_in_the_table():
    result = run("n1", *ALL)
    assert "note: the emptyDir data is lost of: shop/cache-1 (copy what is needed first)\n" in result.stdout
    assert result.stderr == ""


def test_the_table_says_what_stands_in_the_way_first():
    lines = run("n1").stdout.splitlines()
    titles = [line for line in lines if line and not line.startswith((" ", "note:"))]
    assert titles == [
        "Refused: 3",
        "Blocked: 2",
        "Evicted: 8 in 4 tiers, within about 3m10s, after these are mended",
        "Passed over: 2",
    ]
    assert any("PodDisruptionBudget shop/db: The disruption budget db needs" in line for line in lines)
    assert any(line.split() == ["kube-system/coredns-1", "tier", "4"] for line in lines)
    assert "Evicted: 2 in 1 tier, within about 1m30s\n" in run("n1", "--pod-selector", "app=web").stdout
    assert run("n2", "--pod-selector", "app=none").stdout == "Evicted: nothing\n"


def test_other_kinds_are_passed_over_and_counted():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert (
        "warning: standard input: passed over: 1 Secret\n" in run("n2", "-o", "json", objects=[*CLUSTER, secret]).stderr
    )


def test_other_forms_of_the_file():
    pods = {
        "apiVersion": "v1",
        "kind": "PodList",
        "items": [{key: one[key] for key in ("metadata", "spec", "status")} for one in CLUSTER if one["kind"] == "Pod"],
    }
    nodes = list_of(*(one for one in CLUSTER if one["kind"] == "Node")).decode()
    found = document("n1", *ALL, stdin=nodes + json.dumps(pods))
    assert found["evict"] == DOCUMENT["evict"]
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\napiVersion: v1\nkind: Pod\n"
    text += "metadata: {name: p, namespace: n}\nspec: {nodeName: n1, containers: []}\nstatus: null\n"
    assert document("n1", "--force", stdin=text)["evict"] == [[{"namespace": "n", "name": "p"}]]


# -- what is wrong -------------------------------------------------------------------------------------------------------


def test_nodes_that_are_not_there_are_all_named():
    said = 'NODE: "{}": there is no such node; {}'
    lines = said.format("n11", "similar: n1"), said.format("worker", "kubectl get nodes lists them")
    assert wrong("n11", "n1", "worker") == "\n".join(lines)


@pytest.mark.parametrize("option", ["-l", "--pod-selector"])
def test_a_selector_that_is_none(option):
    said = wrong(*(("n1",) if option == "--pod-selector" else ()), option, "a in")
    name = option if option == "--pod-selector" else "--selector"
    assert said.startswith(f'{name}: "a in": must be a valid label selector: unable to parse requirement')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'NODE' or option '--selector'"),
        (["n1", "-l", "a=b", "--plan"], "cannot specify both a node name and a --selector option"),
        (["n1", "--state", "f"], "--state asks no cluster, so it needs --plan"),
        (["n1", "--timeout", "soon"], "Invalid value for '--timeout'"),
        (["n1", "--on-timeout", "pray"], "Invalid value for '--on-timeout'"),
        (["n1", "--plan", "--state", "f", "--context", "c"], "--state asks no cluster"),
        (["n1", "--eviction-requests", "--grace-period", "9"], "an EvictionRequest has no grace period"),
        (["n1", "--eviction-requests", "--disable-eviction"], "cannot stand beside"),
        (["n1", "--plan", "--grace-period", "soon"], "Invalid value for '--grace-period'"),
        (["n1", "--plan", "--now", "noon"], "Invalid value for '--now'"),
        (["n1", "--plan", "-o", "yaml"], "Invalid value for '-o'"),
        (["n1", "-o", "json"], "--output json is for the plan: add --plan"),
        (["n1", "--on-timeout", "force"], "--on-timeout force needs a time: give --timeout or --pod-timeout"),
    ],
)
def test_wrong_usage(arguments, said):
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_api_server_that_is_not_there(tmp_path):
    (tmp_path / "config").write_text(
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n"
    )
    result = CliRunner().invoke(command, ["n1", "--plan", "--kubeconfig", str(tmp_path / "config")])
    said = "the API server is not reached: 127.0.0.1:1: Connection refused; is it up, and do --kubeconfig and --context"
    assert str(result.exception).startswith(said)


def test_a_file_that_is_not_there():
    result = CliRunner().invoke(command, ["n1", "--plan", "--state", "/nosuch"])
    assert str(result.exception) == "/nosuch: cannot be read: No such file or directory"


def test_everything_that_is_wrong_with_a_file_is_told():
    pods = [owned_object("a", priority="high"), owned_object("b", spec={"nodeName": 1})]
    said = wrong("n1", objects=[node_object("n1"), *pods, {**budget_object(), "apiVersion": "policy/v2"}])
    assert said.splitlines() == [
        'standard input: items[1] (Pod n/a): spec.priority: "high": must be an integer, not text',
        "standard input: items[2] (Pod n/b): spec.nodeName: 1: must be text, not an integer",
        'standard input: items[3] (PodDisruptionBudget n/b): apiVersion: "policy/v2": must be policy/v1',
    ]


def test_a_guard_policy_that_makes_no_sense():
    guard = {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "GuardPolicy",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {"provider": {"redis": {}}, "maxUnavailable": 0},
    }
    assert "GuardPolicy n/g: spec.maxUnavailable: 0: must be a number from 1" in wrong(
        "n1", objects=[node_object("n1"), guard]
    )


@pytest.mark.parametrize("text", ["", "{", "kind: Secret\n", "[]"])
def test_a_file_that_is_no_state(text):
    assert wrong("n1", stdin=text).startswith("standard input: ")


@pytest.mark.parametrize("is_cordoned", [False, True])
def test_a_surge_says_that_no_other_node_takes_the_additional_pod(capsys, is_cordoned):
    other = node_object("n2", unschedulable=is_cordoned, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"})
    print_missing_room(case_of(other, owned_object("web-1")))
    assert capsys.readouterr().err.startswith("Warning: no other node takes pods for: ") is is_cordoned
