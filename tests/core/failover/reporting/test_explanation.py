"""``lastcall failover explain``: why not yet, what is awaited, when at the latest."""

import asyncio
import base64
import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from msgspec.structs import replace as changed
from support.failover.cases import BACK, DB, MARK, NOW, OFF_ORDERED, POLICY, PROVED, REFUSED, STUCK, SUSPECT, marked
from support.failover.cases import node as seen
from support.failover.explain_command import CLUSTER, OTHERS, WITH_UID, document, machine, policy, run
from support.failover.snapshots import lease, pod, state, taint
from support.kube.api_servers import TOKEN, kube_cluster
from support.lab.https_server import serving

from lastcall.adapters.kube.resources import LEASES, NAMESPACES, NODES
from lastcall.cli.failover_explain import explain_target, list_objects
from lastcall.cli.main import cli
from lastcall.errors import AlreadyExists, InvalidInput
from lastcall.failover.evidence.lost_pods import LostPod
from lastcall.failover.evidence.owner_mark import encode_mark
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.failover.reporting.cluster_objects import case_from_objects, no_leader_reason, read_object_file
from lastcall.failover.reporting.explanation import explain_node, explain_pod
from lastcall.model.drain_mark import DrainMark
from lastcall.model.fence_policy import FailoverMode


def test_a_silent_node_that_is_not_suspected_yet():
    found = document("n1")
    assert (found["about"], found["next"]) == ("node n1", "nothing is done yet")
    why = "node n1 was heard of 25s ago; it is suspected after a silence of 40s"
    assert found["inTheWay"] == [{"why": why, "until": "2026-11-21T12:00:15Z"}]
    assert found["latest"] == "2026-11-21T12:00:15Z"
    assert found["left"] == "left: shop/db-0; attached: va-v"
    assert "boot b-1 is UNKNOWN" in found["known"][0]
    assert found["known"][1] == "its policy's fencers: bmc"
    assert found["proofs"][-1]["until"] is None


def test_a_node_whose_failover_is_finished_is_not_said_to_be_unknown():
    """The proof stands in no object; the taint that it allowed does, and whose it is."""
    ours = taint("node.kubernetes.io/out-of-service", value="nodeshutdown")
    mark = changed(MARK, boot_id="b-1", tainted=True)
    done = machine("n1", "Unknown", ours, annotations={"lastcall.dev/failover": encode_mark(mark)})
    found = document("n1", done, lease("n1", 90), *OTHERS, policy())
    assert found["known"][0].startswith("boot b-1 is over: lastcall had a proof of that when it set its taint")
    assert found["proofs"] == []
    assert found["next"] == "it is failed over; its return is waited for"
    assert found["inTheWay"] == [{"why": "node n1 has not booted again", "until": None}]
    assert (found["left"], found["latest"]) == ("nothing is left on it", None)
    assert document("n1", done, lease("n1", 90), *OTHERS, WITH_UID, policy())["proofs"] != []
    for others in (
        machine("n1", annotations={"lastcall.dev/failover": encode_mark(mark)}),
        machine("n1", "Unknown", ours),
    ):
        assert "boot b-1 is UNKNOWN" in document("n1", others, lease("n1", 90), *OTHERS, policy())["known"][0]


@pytest.mark.parametrize(("made", "missing"), [("2026-11-21T11:58:59Z", True), ("2026-11-21T11:59:00Z", False)])
def test_replacements_that_are_not_ready_yet_are_named(made, missing):
    lost = LostPod(
        namespace="shop", name="web-1", uid="u9", kind="ReplicaSet", owner="rs", since="2026-11-21T11:59:00Z", labels={}
    )
    mark = changed(MARK, boot_id="b-1", switched_off=True, lost=(lost,))
    place = pod("web-2", "n2")
    place["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    place["metadata"] |= {"uid": "u2", "creationTimestamp": made, "ownerReferences": [owner]}
    node = machine("n1", annotations={"lastcall.dev/failover": encode_mark(mark)})
    found = document("n1", node, lease("n1", 90), *OTHERS, place, policy())
    assert ("not Ready yet elsewhere: shop/web-1;" in found["inTheWay"][0]["why"]) is missing


def test_the_text_says_the_same():
    lines = run("shop/db-0").stdout.splitlines()
    assert lines[0] == "pod shop/db-0: nothing is done yet"
    assert "  - it is bound to node n1, and is not terminating" in lines
    assert lines[-1] == "At the latest: at 2026-11-21T12:00:15Z"


def test_all_that_is_in_the_way_is_told_at_once():
    storm = LimitAnswer(allowed=False, why="too many", again=NOW + 60)
    case = replace(
        SUSPECT, heard=NOW - 10, held_until=NOW + 45, storm=storm, policy=replace(POLICY, mode=FailoverMode.OBSERVE)
    )
    found = explain_node(case, NOW)
    assert [one.until for one in found.hurdles] == [NOW + 30, NOW + 45, NOW + 60, None]
    assert found.hurdles[-1].why == "after that: policy p only observes"
    assert found.resolved_by is None
    assert explain_node(replace(case, policy=POLICY), NOW).resolved_by == NOW + 60


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        (CLUSTER, "no FencePolicy holds for node n1: no FencePolicy selects the node"),
        ([*CLUSTER, policy(suspectAfter="0s")], "FencePolicy workers selects the node, and is not valid"),
        ([*CLUSTER[2:], WITH_UID, policy()], "there is no node n1"),
        ([machine("n1", boot=""), WITH_UID, policy()], "has never reported a boot id"),
        ([machine("n1"), lease("n1", 99), WITH_UID, machine("n2"), machine("n3"), policy()], "3 of 3 nodes are lost"),
        ([*CLUSTER[2:], machine("n1"), lease("n1", 99), policy(mode="Observe")], "policy workers only observes"),
        ([*CLUSTER[2:], machine("n1"), lease("n1", 99), policy(fencers=[])], "names no fencer"),
        (
            [*OTHERS, machine("n1", annotations={"lastcall.dev/failover": "{"}), WITH_UID, policy()],
            "somebody has to take it away",
        ),
    ],
)
def test_why_not(objects, says):
    objects = [*objects, WITH_UID] if WITH_UID not in objects else objects
    unique = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert says in " ".join(one["why"] for one in document("pod/db-0", *unique.values())["inTheWay"])


def test_a_taint_that_was_set_by_hand_counts_if_the_controller_saw_it_being_set_and_that_nobody_else_can_know():
    set_now = taint("node.kubernetes.io/out-of-service", value="nodeshutdown")
    tainted = machine("n1", "Unknown", set_now | {"timeAdded": "2026-11-21T11:59:59Z"})
    acknowledge = "lastcall failover acknowledge n1 --boot-id b-1"
    found = document("n1", tainted, lease("n1", 90), *OTHERS, WITH_UID, policy())
    assert "DEAD" not in str(found)
    assert acknowledge in found["known"][-1]
    found = document("n1", tainted, lease("n1", 90), *OTHERS, WITH_UID, policy(fencers=[]))
    assert found["next"] == "nothing is done yet"
    assert str(found).count(acknowledge) == 1
    assert acknowledge in found["inTheWay"][0]["why"]


def test_a_word_written_by_hand_counts_for_who_has_seen_it_come():
    written = machine("n1", annotations={"lastcall.dev/acknowledged-dead": "b-1"})
    found = document("n1", written, lease("n1", 90), *OTHERS, WITH_UID, policy(fencers=[]))
    assert "DEAD" not in str(found)
    assert found["next"] == "nothing is done yet"


def test_a_node_said_to_be_dead_is_failed_over_as_soon_as_its_silence_allows():
    def acknowledged(ago, lasts=40):
        renewed = lease("n1", ago)
        renewed["spec"]["leaseDurationSeconds"] = lasts
        word = f"b-1 {renewed['spec']['renewTime']}"
        return machine("n1", annotations={"lastcall.dev/acknowledged-dead": word}), renewed

    objects = [*OTHERS, WITH_UID, policy()]
    found = document("n1", *objects, *acknowledged(5))
    assert found["latest"] == "2026-11-21T12:00:15Z"
    assert document("n1", *objects, *acknowledged(5, lasts=12))["latest"] == "2026-11-21T12:00:01Z"
    found = document("n1", *objects, *acknowledged(25))
    assert found["next"].startswith("its failover goes on now")
    assert (found["inTheWay"], found["latest"]) == ([], None)


def word(deadline):
    return {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "NodeShutdown",
        "metadata": {"name": "n1"},
        "spec": {"nodeName": "n1", "bootID": "b-1"},
        "status": {"startTime": "2026-11-21T11:58:00Z", "deadlineTime": deadline},
    }


def test_the_nodes_own_word():
    found = document("n1", *CLUSTER[2:], machine("n1"), lease("n1", 90), policy(), word("2026-11-21T12:03:00Z"))
    assert found["latest"] == "2026-11-21T12:03:00Z"
    assert "has said itself that it shuts down" in found["inTheWay"][0]["why"]


def test_a_node_that_is_past_its_own_deadline_before_it_is_suspected_is_awaited_until_then():
    found = document("n1", *CLUSTER, policy(), word("2026-11-21T12:00:05Z"))
    assert [one["until"] for one in found["inTheWay"]] == ["2026-11-21T12:00:15Z", "2026-11-21T12:00:05Z"]
    assert found["latest"] == "2026-11-21T12:00:15Z"


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (replace(DB, tolerates=True), "it tolerates the taint out-of-service"),
        (replace(DB, disabled=True), "it may not be forced, by its annotation lastcall.dev/failover"),
        (replace(DB, mirror=True), "it is a static pod, which only its kubelet ends"),
        (STUCK, "its finalizers keep it: example.com/x"),
        (replace(DB, refused=REFUSED), "the API server refuses it: too many requests"),
    ],
)
def test_what_keeps_one_pod(pod, says):
    assert says in explain_pod(replace(PROVED, pods=(pod,)), pod, NOW).hurdles[0].why


def test_a_pod_that_its_node_has_ended_needs_no_proof():
    found = explain_pod(replace(SUSPECT, gone=frozenset({"u1"}), held_until=NOW + 9), DB, NOW)
    assert "it needs no proof" in found.known[1]
    assert found.next.startswith("shop/db-0 are deleted now with their own grace")


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (PROVED, "shop/db-0 are deleted now by force"),
        (replace(PROVED, pods=(replace(DB, terminating=True),)), "shop/db-0 are deleted now by force"),
        (replace(PROVED, pods=(), policy=replace(POLICY, detach=True)), "va-1 are deleted now"),
        (replace(PROVED, node=marked()), "the taint out-of-service is set now"),
        (BACK, "what is ours is taken away now"),
        (replace(SUSPECT, node=marked(switched_off=True, fencer="bmc")), "bmc is told to switch off now"),
        (replace(SUSPECT, node=seen(MARK), devices=(OFF_ORDERED,)), "bmc is asked for the status now"),
        (replace(SUSPECT, node=None), "nothing is done"),
        (
            replace(SUSPECT, node=seen(MARK), devices=(replace(OFF_ORDERED, judgement=None, offs=()),)),
            "it is made sure now that its machine is off, by bmc",
        ),
    ],
)
def test_what_comes_next(case, says):
    assert explain_node(case, NOW).next.startswith(says)


def test_the_mark_and_the_fencers():
    found = explain_node(
        replace(PROVED, devices=(OFF_ORDERED, replace(OFF_ORDERED, name="pdu", trouble="no Secret"))), NOW
    )
    assert "it is marked by me since 2026-11-21T12:00:00Z, for boot a; bmc was told to switch it off" in found.known[1]
    assert found.known[2:] == ("fencer bmc was told to switch off", "fencer pdu cannot be used: no Secret")


def test_a_drain_is_named():
    drain = DrainMark(
        id="d", by="ann@desk", since=datetime(2026, 11, 21, 11, 0, tzinfo=UTC), cordoned=True, reason="kernel\n7"
    )
    found = explain_node(replace(SUSPECT, node=replace(seen(MARK), drain=drain)), NOW)
    said = "ann@desk drains it since 2026-11-21T11:00:00Z (kernel 7), which failover does not wait for"
    assert said in found.known


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("n9", (), "there is no pod n9, nor a node of that name"),
        ("node/db-0", (), "there is no node db-0"),
        ("other/db-0", (), "there is no pod db-0 in namespace other"),
        ("db-0", ("-n", "other"), "there is no pod db-0 in namespace other"),
    ],
)
def test_what_is_not_there(target, options, says):
    result = run(target, options=options)
    assert isinstance(result.exception, InvalidInput)
    assert says in str(result.exception)


def test_pods_of_one_name_need_a_namespace():
    both = [*CLUSTER, pod("db-0", "n2", namespace="test"), policy()]
    assert "db-0 may be any of shop/db-0, test/db-0" in str(run("db-0", *both).exception)
    assert document("test/db-0", *both)["about"] == "pod test/db-0"
    assert document("idle", *both, pod("idle"))["inTheWay"][0]["why"] == "it is not bound to a node"


def test_a_wrong_file_and_options_that_do_not_go_together():
    wrong = run("n1", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": 5}})
    assert isinstance(wrong.exception, InvalidInput)
    assert "items[0] (Node): metadata.name: 5: must be text" in str(wrong.exception)
    together = run("n1", options=("--kubeconfig", "x"))
    assert (together.exit_code, "asks no cluster" in together.stderr) == (2, True)


def test_a_controller_that_has_marked_the_node_is_taken_to_lead():
    mark = encode_mark(MARK).replace('"a"', '"b-1"')
    objects = read_object_file(
        state(machine("n1", annotations={"lastcall.dev/failover": mark}), lease("n1", 9)), "state"
    )
    case = case_from_objects(objects, "n1", 1_795_262_400.0)
    assert (case.me, case.leader, case.heard) == ("me", "me", 1_795_262_391.0)


@pytest.mark.parametrize(
    ("holder", "renewed", "leads"), [("one", 3, True), ("one", 90, False), ("", 3, False), (None, 3, False)]
)
def test_nobody_leads(holder, renewed, leads):
    election = lease("lastcall-controller", renewed, namespace="lastcall-system")
    election["spec"]["holderIdentity"] = holder
    found = document("n1", *CLUSTER, policy(), election)
    assert ("no lastcall controller leads" in found["inTheWay"][0]["why"]) is not leads
    assert (found["next"], found["latest"] is None) == (
        ("nothing is done yet", False) if leads else ("nothing is done", True)
    )


@pytest.mark.parametrize("namespace", ["kube-node-lease", "lastcall-nodes"])
async def test_nobody_leads_by_the_lease_of_a_node_whatever_its_name(namespace, tmp_path):
    says = lease("lastcall-controller", 3, namespace=namespace)
    says["spec"]["holderIdentity"] = "me"
    assert not read_object_file(state(says), "state").elections
    async with kube_cluster("lab", tmp_path) as cluster:
        with contextlib.suppress(AlreadyExists):
            await cluster.admin.create(NAMESPACES, {"metadata": {"name": namespace}})
        del says["spec"]["renewTime"]
        await cluster.admin.create(LEASES, says, namespace=namespace)
        assert (await list_objects(cluster.admin)).elections == ()


async def test_a_live_cluster(tmp_path):
    async with kube_cluster("lab", tmp_path) as cluster:
        await cluster.admin.create(NODES, {"metadata": {"name": "n1"}})
        objects = await list_objects(cluster.admin)
        assert no_leader_reason(objects, 1_795_262_400.0) == "no lastcall controller has ever led in this cluster"
        found = explain_target(objects, "n1", "", 1_795_262_400.0)
        assert found.about == "node n1"
        assert "no FencePolicy selects the node" in found.hurdles[0].why


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "{url}", certificate-authority-data: "{ca}"}}}}]
users: [{{name: c, user: {{token: "{token}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
"""


async def test_the_command_asks_the_cluster(tmp_path):
    async with kube_cluster("lab", tmp_path) as cluster, serving(cluster.server, tmp_path) as (url, authority):
        await cluster.admin.create(NODES, {"metadata": {"name": "n1"}})
        file = tmp_path / "config"
        ca = base64.b64encode(authority.encode()).decode()
        file.write_text(KUBECONFIG.format(url=url, ca=ca, token=TOKEN))
        arguments = ["failover", "explain", "n1", "--kubeconfig", str(file)]
        result = await asyncio.to_thread(CliRunner().invoke, cli, arguments)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "node n1: nothing is done")
    assert "no lastcall controller has ever led in this cluster" in result.stdout
