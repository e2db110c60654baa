"""What ``lastcall failover explain`` is asked about, and the file from which it answers."""

import pytest
from support.failover.explain_command import CLUSTER, document, machine, policy, run
from support.failover.snapshots import pod, state

from lastcall.errors import InvalidInput
from lastcall.failover.reporting.cluster_objects import read_object_file


@pytest.mark.parametrize("target", ["shop/db-0", "pod/db-0", "pods/db-0", "pod/shop/db-0", "db-0"])
@pytest.mark.parametrize("options", [(), ("-n", "shop")])
def test_a_pod_can_be_named_in_several_ways(target, options):
    assert document(target, options=options)["about"] == "pod shop/db-0"


@pytest.mark.parametrize("target", ["n1", "node/n1", "nodes/n1"])
def test_a_node_can_be_named_in_several_ways(target):
    assert document(target)["about"] == "node n1"
    assert document("node/n1", options=("-n", "shop"))["about"] == "node n1"


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("", (), '"": must be NODE, POD, NAMESPACE/POD, node/NODE or pod/POD'),
        ("shop/", (), '"shop/": must be NODE'),
        ("node/shop/n1", (), '"node/shop/n1": must be NODE'),
        ("a/b/db-0", (), '"a/b/db-0": must be NODE'),
        ("shop/db-0", ("-n", "test"), '"shop/db-0": must be in namespace test, which --namespace names'),
        ("node/db-0", (), "there is no node db-0"),
        ("pod/n1", (), "there is no pod n1"),
        ("n1", ("-n", "shop"), "there is no pod n1 in namespace shop"),
    ],
)
def test_what_names_nothing_is_refused(target, options, says):
    assert says in str(run(target, options=options).exception)


def test_a_pod_of_a_missing_node():
    found = document("lost", *CLUSTER, pod("lost", "gone"), policy())
    assert (found["about"], found["known"], found["left"]) == ("pod shop/lost", ["it is bound to node gone"], "")
    assert found["inTheWay"][0]["why"] == "there is no node gone, and a deleted Node is not a dead machine"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "document: empty: must be List, or Node"),
        (b'{"kind": "List", "items": 3}', "items: 3: must be a list"),
        (b"kind: Deployment", 'kind: "Deployment": must be List, or Node'),
        (state(machine("n1"), machine("n1")), 'items[1] (Node n1): metadata.name: "n1": must be unique'),
        (state(policy(), policy()), 'items[1] (FencePolicy workers): metadata.name: "workers": must be unique'),
        (state({"kind": "FencePolicy", "metadata": []}, "x"), 'items[1]: "x": must be a mapping with a kind'),
    ],
)
def test_files_that_are_no_state(data, says):
    with pytest.raises(InvalidInput) as caught:
        read_object_file(data, "state")
    assert caught.value.violations[0].startswith(says)


def test_what_the_file_leaves_out_is_as_in_an_api_server():
    bare = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "n1"}}
    stranger = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n1"}}
    found = read_object_file(state(bare, stranger, machine("n1")), "state")
    assert ([one.key for one in found.pods], len(found.nodes)) == ([("default", "a")], 1)


def test_a_list_may_stand_in_a_list():
    inner = {
        "kind": "List",
        "items": [{"kind": "PodList", "items": [{"metadata": {"name": "a", "namespace": "shop"}}]}],
    }
    found = read_object_file(state(inner, machine("n1")), "state")
    assert ([one.key for one in found.pods], [one.metadata.name for one in found.nodes]) == ([("shop", "a")], ["n1"])
