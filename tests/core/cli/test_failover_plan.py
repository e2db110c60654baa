"""``lastcall failover plan`` as it is called: streams, exit codes, what is wrong with a file."""

import json

import pytest
from click.testing import CliRunner
from support.failover.snapshots import OUT, ago, attachment, exists, lease, node, out, pod, state, taint, volume

from lastcall.cli.failover import command
from lastcall.cli.main import cli
from lastcall.errors import InvalidInput
from lastcall.model.snapshot import Snapshot
from lastcall.model.state_file import read_state

NOW = ["--now", "2026-11-21T12:00:00Z"]
CLUSTER = [
    out("n1"),
    lease("n1", 90),
    node("n2", "True", taint("maintenance")),
    pod("db-0", "n1", terminating=True, claim="data-db-0"),
    pod("agent", "n1", terminating=True, tolerates=[exists()]),
    pod("web", "n2", tolerates=[exists("maintenance", seconds=300)]),
    pod("lost", "n3"),
    volume("v", "data-db-0"),
    volume("w"),
    attachment("va-v", "v", "n1"),
    attachment("va-w", "w", "n1"),
]


def run(*options, stdin=None, now=NOW):
    arguments = ["plan", "--state", "-", *now, *options]
    return CliRunner().invoke(command, arguments, input=state(*CLUSTER) if stdin is None else stdin)


def document(*options, **rest):
    result = run("-o", "json", *options, **rest)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


def test_the_document_by_lastcalls_rules():
    assert document() == {
        "forceDelete": [{"namespace": "shop", "name": "db-0", "reason": "out-of-service"}],
        "forceDetach": [{"volumeAttachment": "va-w", "node": "n1", "reason": "out-of-service"}],
        "evict": [
            {"namespace": "shop", "name": "db-0", "at": "2026-11-21T12:00:00Z"},
            {"namespace": "shop", "name": "web", "at": "2026-11-21T12:05:00Z"},
        ],
        "keep": [
            {"namespace": "shop", "name": "agent", "why": "node n1 is out of service, which the pod tolerates"},
            {
                "namespace": "shop",
                "name": "lost",
                "why": "node n3 is missing, and a deleted Node is not a dead machine",
            },
        ],
    }


def test_the_document_by_upstreams_rules():
    assert document("--upstream-rules", "--quarantine-elapsed", "--detach-timeout-elapsed") == {
        "forceDelete": [
            {"namespace": "shop", "name": "agent", "reason": "out-of-service"},
            {"namespace": "shop", "name": "db-0", "reason": "out-of-service"},
            {"namespace": "shop", "name": "lost", "reason": "orphaned"},
        ],
        "forceDetach": [{"volumeAttachment": "va-w", "node": "n1", "reason": "timeout"}],
        "evict": [
            {"namespace": "shop", "name": "db-0", "at": "2026-11-21T12:00:00Z"},
            {"namespace": "shop", "name": "web", "at": "2026-11-21T12:05:00Z"},
        ],
        "keep": [],
    }


def test_every_option_reaches_its_rule():
    finished = state(node("n1"), *(pod(name, "n1", phase="Succeeded") for name in "abc"))
    found = document("--terminated-pod-gc-threshold", "2", stdin=finished)["forceDelete"]
    assert found == [{"namespace": "shop", "name": "a", "reason": "terminated"}]
    assert document("--terminated-pod-gc-threshold", "-2", stdin=finished)["forceDelete"] == []
    forced = ("--upstream-rules", "--detach-timeout-elapsed", "--disable-force-detach-on-timeout")
    assert document(*forced)["forceDetach"][0]["reason"] == "out-of-service"
    busy = node("n1", "True", taint("load", value="70"))
    patient = pod("a", "n1", tolerates=[{"key": "load", "operator": "Lt", "value": "80", "effect": "NoExecute"}])
    assert len(document(stdin=state(busy, patient))["evict"]) == 1
    assert document("--comparison-operators", stdin=state(busy, patient))["evict"] == []


def test_the_table_says_the_same_and_what_is_held_back():
    alive = state(*(one for one in CLUSTER if one["kind"] != "Lease"), lease("n1", 5))
    result = run(stdin=alive)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Deleted by force: nothing" in result.stdout
    assert "shop/web" in result.stdout
    assert "2026-11-21T12:05:00Z" in result.stdout
    assert "nothing is forced from node n1, which is out of service: it is not Ready" in " ".join(result.stdout.split())
    assert "held back" not in run("--upstream-rules", stdin=alive).stdout
    assert "note:" not in run("--upstream-rules", stdin=alive).stdout


def test_what_goes_into_a_pipe_is_not_folded(monkeypatch):
    """So that ``grep`` finds whole names."""
    monkeypatch.delenv("COLUMNS", raising=False)
    primary, machine = f"the-primary-{'of-a-database-' * 5}0", "ip-10-0-123-45.eu-central-1.compute.internal"
    found = run(
        stdin=state(out(machine), pod(primary, machine, terminating=True), pod("b", machine, tolerates=[exists()]))
    )
    lines = [line.strip() for line in found.stdout.splitlines()]
    assert f"shop/{primary}  out-of-service" in lines
    assert f"shop/b  it tolerates the NoExecute taints of node {machine} for ever" in lines


@pytest.mark.parametrize(
    ("now", "at"),
    [
        ("2026-11-21T13:00:00+01:00", "2026-11-21T12:05:00Z"),
        ("2026-11-21T12:00:00.25Z", "2026-11-21T12:05:00.250000Z"),
        ("2026-12-31T23:59:59Z", "2027-01-01T00:04:59Z"),
    ],
)
def test_times_are_utc(now, at):
    assert document(now=["--now", now])["evict"][1]["at"] == at


def test_without_now_the_present_counts():
    at = json.loads(run("-o", "json", now=[]).stdout)["evict"][0]["at"]
    assert at.endswith("Z")
    assert "." not in at
    assert at[:4] >= "2026"


@pytest.mark.parametrize("now", ["", "now", "2026-11-21", "2026-11-21T12:00:00", "9999-01-01T00:00:00Z", "1700000000"])
def test_a_wrong_time_is_refused(now):
    result = run(now=["--now", now])
    assert result.exit_code == 2
    assert "is not an RFC 3339 time" in result.stderr


@pytest.mark.parametrize("options", [["--terminated-pod-gc-threshold", "many"], ["-o", "yaml"], ["--nonsense"]])
def test_wrong_options_are_refused(options):
    assert run(*options).exit_code == 2


def test_a_file_that_is_not_there():
    with pytest.raises(InvalidInput, match="cannot be read"):
        CliRunner().invoke(cli, ["failover", "plan", "--state", "/nowhere"], catch_exceptions=False)
    assert CliRunner().invoke(command, ["plan"]).exit_code == 2


# -- the file ----------------------------------------------------------------------------------------------------------


def wrong(data):
    with pytest.raises(InvalidInput) as caught:
        read_state(data if isinstance(data, bytes) else state(*data), "s")
    return list(caught.value.violations)


def changed(value, path, new):
    *steps, last = path
    for step in steps:
        value = value[step]
    value[last] = new


@pytest.mark.parametrize(
    ("thing", "path", "value", "violation"),
    [
        (pod("a"), ["metadata", "name"], "", 'items[0] (Pod shop): metadata.name: "": must be text of length >= 1'),
        (pod("a"), ["metadata"], {}, "items[0] (Pod): metadata.name: missing: must be given"),
        (pod("a"), ["spec", "nodeName"], 3, "items[0] (Pod shop/a): spec.nodeName: 3: must be text, not an integer"),
        (
            pod("a"),
            ["spec", "tolerations"],
            [{"tolerationSeconds": "x"}],
            'items[0] (Pod shop/a): spec.tolerations[0].tolerationSeconds: "x": must be an integer, not text',
        ),
        (
            pod("a"),
            ["metadata", "creationTimestamp"],
            "yesterday",
            'items[0] (Pod shop/a): metadata.creationTimestamp: "yesterday": invalid RFC3339 encoded datetime',
        ),
        (
            out("n"),
            ["spec", "taints", 0, "timeAdded"],
            "12:00",
            'items[0] (Node n): spec.taints[0].timeAdded: "12:00": invalid RFC3339 encoded datetime',
        ),
        (out("n"), ["spec", "taints"], [{}], "items[0] (Node n): spec.taints[0].key: missing: must be given"),
        (
            attachment("va", "v", "n"),
            ["apiVersion"],
            "storage.k8s.io/v1beta1",
            'items[0] (VolumeAttachment va): apiVersion: "storage.k8s.io/v1beta1": must be storage.k8s.io/v1',
        ),
        (
            attachment("va", "v", "n"),
            ["spec"],
            {},
            "items[0] (VolumeAttachment va): spec.nodeName: missing: must be given",
        ),
        (
            lease("n", 1),
            ["spec", "renewTime"],
            7,
            "items[0] (Lease kube-node-lease/n): spec.renewTime: 7: must be an RFC 3339 time, not an integer",
        ),
        (
            volume("v"),
            ["spec", "csi", "driver"],
            None,
            "items[0] (PersistentVolume v): spec.csi.driver: missing: must be given",
        ),
    ],
)
def test_what_is_wrong_is_named_with_item_field_and_rule(thing, path, value, violation):
    changed(thing, path, value)
    assert wrong([thing]) == [violation]


def test_everything_that_is_wrong_is_told_at_once():
    first, second = pod("a"), out("n")
    first["spec"]["nodeName"] = 3
    second["status"] = []
    assert len(wrong([first, second, "text", {"kind": 4}])) == 4


def test_nothing_stands_twice():
    assert wrong([pod("a"), pod("a", namespace="other"), pod("a")]) == [
        'items[2] (Pod shop/a): metadata.name: "a": must be unique'
    ]


@pytest.mark.parametrize(
    ("data", "violation"),
    [
        (b"", "document: empty: must be List, or Node"),
        (b"[]", "kind: missing: must be List, or Node"),
        (b"kind: Deployment", 'kind: "Deployment": must be List, or Node'),
        (b"kind: List", "items: missing: must be a list"),
        (b'{"kind": "PodList", "items": 3}', "items: 3: must be a list"),
        (b"{", "line 2, column 1"),
    ],
)
def test_files_that_are_no_state(data, violation):
    assert wrong(data)[0].startswith(violation)


def test_other_forms_of_the_file():
    nodes = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n"}}]})
    single = json.dumps(pod("a", "n"))
    found = read_state(f"{nodes}\n---\n{single}\n---\nkind: Service\nmetadata: {{name: s}}\n".encode(), "s")
    assert [one.metadata.name for one in found.snapshot.nodes] == ["n"]
    assert [one.key for one in found.snapshot.pods] == [("shop", "a")]
    assert found.warnings == ("s: passed over: 1 Service",)
    assert read_state(state(), "s").snapshot == Snapshot()


def test_a_list_may_stand_in_a_list():
    """As kubectl reads it: somebody has put two answers into one List."""
    nodes = {"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n"}}]}
    inner = {"kind": "List", "apiVersion": "v1", "items": [nodes, pod("a", "n")]}
    found = read_state(state(inner, volume("v")), "s")
    assert [one.metadata.name for one in found.snapshot.nodes] == ["n"]
    assert [one.key for one in found.snapshot.pods] == [("shop", "a")]
    assert (len(found.snapshot.volumes), found.warnings) == (1, ())
    assert read_state(state({"kind": "ConfigMapList", "items": []}, node("n")), "s").warnings == (
        "s: passed over: 1 ConfigMapList",
    )


def test_what_is_wrong_in_a_list_in_a_list_is_named_with_its_place():
    inner = {"kind": "List", "items": [pod("a"), {"kind": "PodList"}, 7, pod("")]}
    assert wrong([pod("a"), inner]) == [
        'items[1].items[0] (Pod shop/a): metadata.name: "a": must be unique',
        "items[1].items[1].items: missing: must be a list",
        "items[1].items[2]: 7: must be a mapping with a kind",
        'items[1].items[3] (Pod shop): metadata.name: "": must be text of length >= 1',
    ]


def test_answers_of_kubectl_may_follow_each_other():
    found = read_state(state(node("n")) + b"\n" + state(pod("a", "n")) + b"\n", "s")
    assert (len(found.snapshot.nodes), len(found.snapshot.pods), found.warnings) == (1, 1, ())


def test_nulls_count_as_absent_and_a_pod_without_a_namespace_is_in_the_default_one():
    bare = {"kind": "Pod", "metadata": {"name": "a", "creationTimestamp": None}, "spec": None, "status": None}
    [found] = read_state(state(bare), "s").snapshot.pods
    assert (found.key, found.status.phase) == (("default", "a"), "Pending")


def test_kinds_of_other_groups_are_not_taken_for_those_of_kubernetes():
    stranger = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n1"}}
    found = read_state(state(stranger, node("n1"), pod("a", "n1")), "s")
    assert len(found.snapshot.nodes) == 1
    assert found.warnings == ("s: passed over: 1 Node",)


def test_what_is_missing_is_said_and_the_document_stays_alone_on_standard_output():
    result = run("-o", "json", stdin=state(pod("a", "n1"), attachment("va", "v", "n1")))
    assert json.loads(result.stdout)["forceDelete"] == []
    assert result.stderr.splitlines() == [
        "warning: standard input: no Node: all nodes of the pods count as missing",
        "warning: standard input: no PersistentVolume for: va",
    ]


@pytest.mark.parametrize("nothing", ["[]", "null"])
def test_a_state_without_anything_is_a_plan_without_anything_and_says_so(nothing):
    result = run("-o", "json", stdin=f'{{"kind": "List", "items": {nothing}}}')
    assert json.loads(result.stdout) == {"forceDelete": [], "forceDetach": [], "evict": [], "keep": []}
    assert result.stderr == "warning: standard input: no Node: there is nothing to plan for\n"


def test_what_is_in_the_file_for_explain_and_volumes_without_a_name_are_no_reason_to_warn():
    inline = attachment("va", "", "n1")
    inline["spec"]["source"] = {"inlineVolumeSpec": {"csi": {}}}
    ours = [{"apiVersion": "lastcall.dev/v1alpha1", "kind": kind} for kind in ("FencePolicy", "NodeShutdown")]
    empty = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicyList", "items": []}
    assert read_state(state(node("n1"), inline, *ours, empty), "s").warnings == ()


def test_yaml_and_times_of_other_zones_are_read():
    text = (
        f"kind: Node\nmetadata: {{name: n}}\nspec: {{taints: [{{key: {OUT}, timeAdded: 2026-11-21T13:00:00+01:00}}]}}\n"
    )
    [found] = read_state(text.encode(), "s").snapshot.nodes
    assert found.out_of_service[0].time_added.strftime("%Y-%m-%dT%H:%M:%S%z") == "2026-11-21T13:00:00+0100"
    assert ago(0) == "2026-11-21T12:00:00Z"
