"""What is wrong with a user's own cluster in a file, or with a scenario for it: each is told with its field."""

import copy
import json

import pytest
import yaml
from support.simulation.user_clusters import HEAD, KUBEADM, changed

from lastcall.errors import InvalidInput
from lastcall_lab.simulation.recorded_cluster.state_file import read_state
from lastcall_lab.simulation.scenario_text import reader as scenarios


def violations(data):
    with pytest.raises(InvalidInput) as error:
        read_state(data if isinstance(data, bytes) else data.encode(), "state")
    return list(error.value.violations)


def test_every_item_that_is_wrong_is_told_with_its_field():
    def spoil(name, change):
        return name, change

    found = violations(
        changed(
            KUBEADM,
            spoil("web", lambda one: one["spec"].pop("template", None)),
            spoil("db-0", lambda one: one["spec"].update(terminationGracePeriodSeconds="long")),
            spoil("cache-x7", lambda one: one["spec"].update(containers=[])),
            spoil("kube-proxy", lambda one: one.update(apiVersion="extensions/v1beta1")),
        )
    )
    told = "\n".join(found)
    assert "(Deployment shop/web): spec.template.spec.containers: missing: there must be one at least" in told
    assert "(Pod shop/db-0): json: cannot unmarshal string into Go struct field" in told
    assert "terminationGracePeriodSeconds of type int64" in told
    assert "(Pod shop/cache-x7): spec.containers: missing: there must be one at least" in told
    assert '(DaemonSet kube-system/kube-proxy): apiVersion: "extensions/v1beta1": must be apps/v1' in told
    assert all(one.startswith("items[") for one in found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "document: empty: must be a List, as `kubectl get -o yaml` gives it, or an object"),
        ("[1]", "document: [1]: must be a List, as `kubectl get -o yaml` gives it, or an object"),
        ("kind: List", "items: missing: must be a list"),
        ("{kind: List, items: {}}", "items: {}: must be a list"),
        ("{kind: List, items: [1]}", "items[0]: 1: must be an object with apiVersion, kind and metadata"),
        ("{kind: List, items: []}", "items: no Node: there must be at least one, or nothing can run"),
        ("{kind: NodeList, items: [{metadata: {}}]}", "items[0] (Node): metadata.name: missing: must be given"),
    ],
)
def test_a_file_that_is_none(text, told):
    assert violations(text) == [told]


def test_an_object_that_is_there_twice():
    whole = yaml.safe_load(KUBEADM)
    whole["items"].append(copy.deepcopy(whole["items"][0]))
    assert violations(json.dumps(whole)) == [
        f"items[{len(whole['items']) - 1}] (Node cp): is there twice: each object must be there once"
    ]


def refused(text, data=KUBEADM):
    with pytest.raises(InvalidInput) as error:
        scenarios.read_scenario((HEAD + text).encode(), "mine.yaml", read_state(data, "state") if data else None)
    return list(error.value.violations)


def test_a_scenario_for_a_cluster_from_a_file_has_none_of_its_own():
    assert refused("nodes: 3\nworkloads: [{deployment: web}]") == [
        "nodes: 3: cannot be given beside a cluster from a file (--state)",
        'workloads: [{"deployment": "web"}]: cannot be given beside a cluster from a file (--state)',
    ]
    assert refused("assume: {endsIn: 3s}", None) == [
        'assume: {"endsIn": "3s"}: means nothing without a cluster from a file (--state)'
    ]


def test_names_that_are_not_in_the_file():
    found = refused(
        "timeline: {1m: reboot worker-9}\n"
        "expect: [blog is never down]\n"
        "assume: {requests: {back: 1/s}, byWorkload: {blog: {endsIn: 1s}}, endIn: 3s}"
    )
    assert found[0].startswith('assume.endIn: "3s": unknown field, did you mean')
    assert found[1] == (
        'assume.byWorkload.blog: "blog": there is no such workload; known are shop/db, shop/web,'
        " kube-system/kube-proxy, kube-system/etcd, shop/cache"
    )
    assert found[2] == 'assume.requests.back: "back": there is no such Service with pods; known are shop/front'
    assert '"worker-9" means no machine; known are cp, worker-1, worker-2, worker-3' in found[3]
    assert "there is no workload blog; known are shop/db" in found[4]
