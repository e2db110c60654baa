"""A user's own cluster, from a file of kubectl's, as the one that a scenario happens to."""

import functools
import json
import re
from collections import Counter

import pytest
import yaml
from support.conformance.replay import PLACEHOLDER, REFERENCE, REPEATED, cases
from support.simulation.user_clusters import HEAD, K3S, KUBEADM, STATES, changed

from lastcall.adapters.kube.resources import ATTACHMENTS, PODS
from lastcall.errors import InvalidInput
from lastcall_lab import virtual
from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.recorded_cluster.kubectl_items import KINDS
from lastcall_lab.simulation.recorded_cluster.state_file import read_state
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario import ScenarioWorkloadKind, Verb
from lastcall_lab.simulation.scenario_text import reader as scenarios
from lastcall_lab.volumes.volume_events import VolumeEventType

PHASES = """
agent:
  shutdownGracePeriodByPodPriority:
  - {priority: 0, shutdownGracePeriodSeconds: 60}
  - {priority: 1000, shutdownGracePeriodSeconds: 40}
  - {priority: 2000000000, shutdownGracePeriodSeconds: 10}
"""


@functools.cache
def played(data, text):
    """The rehearsal, its outcome, and the pods as they were at time 0 and are at the end."""
    scenario = scenarios.read_scenario((HEAD + text).encode(), "mine.yaml", read_state(data, "state"))

    async def main():
        rehearsal = Rehearsal(scenario, 1)
        await rehearsal.run()
        return (
            rehearsal,
            build_outcome(rehearsal),
            rehearsal.cluster.list_objects(PODS),
            rehearsal.cluster.list_objects(ATTACHMENTS),
        )

    return virtual.run(main())


def workload(found, name):
    return next(one for one in found.workloads if one.name == name)


def happenings(rehearsal, uid, container):
    """What reached a container, and when, counted from time 0."""
    return [
        (one.what, round(one.at - rehearsal.start, 1))
        for one in rehearsal.cluster.truth.happenings
        if (one.uid, one.container) == (uid, container) and one.what != "order"
    ]


# -- a cluster in which nothing happens --------------------------------------------------------------------------------


def test_a_cluster_to_which_nothing_happens_stays_as_it_is():
    rehearsal, found, pods, attachments = played(KUBEADM, "lasts: 5m")
    before = {one["metadata"]["uid"] for one in yaml.safe_load(KUBEADM)["items"] if one["kind"] == "Pod"}
    after = {one["metadata"]["uid"] for one in pods}
    left = {"20000000-0000-4000-8000-000000000023"}
    assert before - after == left, "the pod that was being deleted is gone, and no other"
    assert after <= before, "no controller has made another pod"
    assert found.is_good, "what is broken or away already is nobody's failure"
    assert all(workload(found, name).down == 0 for name in ("db", "web", "kube-proxy", "etcd", "cache"))
    assert [one["spec"]["nodeName"] for one in attachments] == ["worker-1"]
    assert {one["metadata"]["name"] for one in pods if one["status"]["phase"] == "Succeeded"} == {"backup-1-aaaaa"}
    detached = [one for one in rehearsal.cluster.storage.records if one.what is VolumeEventType.DETACHED]
    assert not detached


def test_a_list_may_stand_in_a_list():
    """As kubectl reads it: somebody has put two answers into one List."""
    whole = yaml.safe_load(KUBEADM)
    nodes = [one for one in whole["items"] if one["kind"] == "Node"]
    others = [one for one in whole["items"] if one["kind"] != "Node"]
    inner = {"apiVersion": "v1", "kind": "List", "items": others}
    answers = {"apiVersion": "v1", "kind": "List", "items": [{"kind": "NodeList", "items": nodes}, inner]}
    found, flat = read_state(json.dumps(answers).encode(), "state"), read_state(KUBEADM, "state")
    assert (found.nodes, found.workloads, found.services) == (flat.nodes, flat.workloads, flat.services)
    assert found.warnings == flat.warnings
    inner["items"] = 3
    with pytest.raises(InvalidInput, match=r"items\[1\]\.items: 3: must be a list"):
        read_state(json.dumps(answers).encode(), "state")


def test_the_workloads_are_those_of_the_file():
    _, found, _, _ = played(KUBEADM, "lasts: 5m")
    assert [(one.kind, one.namespace, one.name, one.wanted, one.serving) for one in found.workloads] == [
        (ScenarioWorkloadKind.STATEFUL_SET, "shop", "db", 1, 1),
        (ScenarioWorkloadKind.DEPLOYMENT, "shop", "web", 3, 2),  # one crashes
        (ScenarioWorkloadKind.DAEMON_SET, "kube-system", "kube-proxy", 3, 3),  # one machine is off
        (ScenarioWorkloadKind.POD, "kube-system", "etcd", 1, 1),
        (ScenarioWorkloadKind.POD, "shop", "cache", 1, 1),
    ]


def test_what_is_not_simulated_as_it_is_is_said():
    assert read_state(KUBEADM, "state").warnings == (
        "state: 1 ConfigMap passed over: such objects are not simulated",
        "state: pods whose owners are not in the file, so that nobody replaces them: 1 (shop/cache-x7)",
        "state: nodes that are not ready, whose machines count as off: 1 (worker-3)",
        "state: pods with containers that fail or are not ready, and stay so: 1 (shop/web-5d8f7c6b9-ddddd)",
        "state: not simulated: readiness gates (they count as passed): 1",
    )


def test_a_container_that_crashes_goes_on_crashing():
    rehearsal, _, _, _ = played(KUBEADM, "lasts: 5m")
    what = Counter(what for what, _ in happenings(rehearsal, "20000000-0000-4000-8000-000000000024", "web"))
    assert what["exit"] == what["start"] >= 3


# -- and in which machines go down --------------------------------------------------------------------------------------

REBOOTS = f"""{PHASES}
timeline: {{1m: reboot worker-1, 5m: reboot cp}}
lasts: 10m
assume: {{requests: {{front: 10/s}}, byWorkload: {{db: {{endsIn: 20s}}, shop/web: {{endsIn: 3s}}}}}}
expect: [shop/db is down for at most 2m, cache is never down]
"""


def test_containers_end_in_their_phases_and_with_their_hooks():
    rehearsal, _, _, _ = played(KUBEADM, REBOOTS)
    db = happenings(rehearsal, "20000000-0000-4000-8000-000000000031", "db")
    assert [what for what, _ in db] == ["start", "hook", "hook over", "TERM", "exit"]
    times = dict(db)
    assert times["hook"] == pytest.approx(60, abs=0.5)
    assert times["TERM"] - times["hook"] == pytest.approx(5, abs=0.2), "an httpGet hook takes what is assumed"
    assert times["exit"] - times["TERM"] == pytest.approx(20, abs=0.2), "byWorkload"
    web = dict(happenings(rehearsal, "20000000-0000-4000-8000-000000000021", "web"))
    assert web["hook"] >= times["exit"], "priority 1000 follows priority 0"
    assert web["TERM"] - web["hook"] == pytest.approx(7, abs=0.2), "sleep 7"
    proxy = dict(happenings(rehearsal, "20000000-0000-4000-8000-000000000012", "kube-proxy"))
    assert proxy["TERM"] >= web["exit"]


def test_a_static_pod_is_there_again_after_the_boot_of_its_machine():
    rehearsal, found, pods, _ = played(KUBEADM, REBOOTS)
    etcd = next(one for one in pods if one["metadata"]["name"] == "etcd-cp")
    assert etcd["metadata"]["uid"] != "20000000-0000-4000-8000-000000000001"
    assert etcd["status"]["phase"] == "Running"
    assert workload(found, "etcd").serving == 1
    assert 30 < workload(found, "etcd").down < 120


def test_what_becomes_of_the_workloads():
    _, found, pods, _ = played(KUBEADM, REBOOTS)
    db, cache = workload(found, "db"), workload(found, "cache")
    assert (db.serving, cache.serving) == (1, 0), "nobody replaces a pod whose owner is not there"
    assert 60 < db.down < 180
    assert [one.holds for one in found.verdicts] == [True, False]
    assert workload(found, "web").serving == 3, "what has replaced the pod that crashed works"
    assert 0 < workload(found, "web").requests_lost < 100
    assert workload(found, "web").requests == 6000
    assert {one["metadata"]["name"] for one in pods if one["metadata"]["name"].startswith("db-")} == {"db-0"}


def test_a_disk_of_another_driver_is_detached_and_attached():
    rehearsal, _, _, attachments = played(KUBEADM, REBOOTS)
    told = [(one.what, one.node, one.volume) for one in rehearsal.cluster.storage.records]
    mounts = [one for one in told if one[0] in (VolumeEventType.MOUNTED, VolumeEventType.UNMOUNTED)]
    assert [what for what, _, _ in mounts] == [
        VolumeEventType.MOUNTED,
        VolumeEventType.UNMOUNTED,
        VolumeEventType.MOUNTED,
    ]
    assert {volume for _, _, volume in mounts} == {"pvc-5000"}
    assert [one["spec"]["source"]["persistentVolumeName"] for one in attachments] == ["pvc-5000"]


def test_nodes_can_be_named_by_their_labels():
    found = scenarios.read_scenario(
        f"{HEAD}timeline: {{1m: cut the power of topology.kubernetes.io/zone z2}}".encode(),
        "x",
        read_state(KUBEADM, "state"),
    )
    assert found.timeline[0].verb is Verb.POWER_CUT
    assert found.timeline[0].nodes == ("topology.kubernetes.io/zone z2",)


def test_a_rolling_reboot_passes_over_a_machine_that_is_off_already():
    data = changed(KUBEADM, ("worker-1", lambda one: one["status"].update(conditions=[])))
    rehearsal, _, _, _ = played(data, f"{PHASES}timeline: {{1m: reboot all nodes one after the other}}\nlasts: 15m")
    off = [one.node for one in rehearsal.cluster.truth.powers if one.what == "off" and one.at > rehearsal.start]
    assert off == ["cp", "worker-2"]


def test_a_drain_leaves_static_pods_and_daemons_where_they_are():
    _, _, pods, _ = played(KUBEADM, "timeline: {1m: drain cp}\nlasts: 3m")
    assert {one["metadata"]["name"] for one in pods if one["spec"]["nodeName"] == "cp"} == {
        "etcd-cp",
        "kube-proxy-aaaaa",
    }


def test_the_same_seed_has_the_same_outcome():
    first, second = (played.__wrapped__(KUBEADM, REBOOTS)[1] for _ in range(2))
    assert first == second


def test_the_scenario_of_the_how_to_is_one():
    page = (STATES.parents[1] / "docs/how-to/simulate-my-cluster.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    found = [scenarios.read_scenario(block.encode(), "page", read_state(KUBEADM, "state")) for block in blocks]
    assert [one.name for one in found] == ["kernel-upgrade"]


# -- k3s: several documents, pods and volumes of machines --------------------------------------------------------------


def test_a_cluster_of_which_only_nodes_and_pods_are_told():
    _, found, _, _ = played(K3S, "timeline: {1m: reboot agent-1}\nlasts: 4m")
    assert [(one.kind, one.name, one.wanted) for one in found.workloads] == [
        (ScenarioWorkloadKind.POD, "loner", 1),
        (ScenarioWorkloadKind.POD, "coredns-ccb96694c", 2),
        (ScenarioWorkloadKind.POD, "svclb-traefik-1", 2),
    ]
    assert workload(found, "coredns-ccb96694c").serving == 1, "nobody replaces the one on agent-1"
    assert workload(found, "loner").serving == 0
    assert read_state(K3S, "state").recorded.at == parse_seconds("2026-11-21T11:00:00Z"), "the newest time in the file"


def test_a_claim_that_is_not_in_the_file_counts_as_a_disk():
    state = read_state(K3S, "state")
    made = Counter(one["kind"] for one in state.recorded.objects)
    assert (made["PersistentVolumeClaim"], made["PersistentVolume"], made["VolumeAttachment"]) == (1, 1, 1)
    assert any("claims that are not in the file" in one for one in state.warnings)


def test_what_pods_name_and_the_server_needs_is_made():
    found = {(one["kind"], one["metadata"]["name"]) for one in read_state(K3S, "state").recorded.objects}
    assert ("Namespace", "apps") in found
    assert ("PriorityClass", "gold") in found


# -- objects that a real API server has answered with ------------------------------------------------------------------

_VALUES = {
    "time": "2026-11-20T10:00:00Z",
    "microtime": "2026-11-20T10:00:00.000000Z",
    "rv": "7",
    "gen": "x5",
}


def real_objects():
    """Those of the recordings (Kubernetes 1.36.2), the last answer about each."""
    found = {}
    for _, case in cases():
        for step in case.get("steps", ()):
            for obj in _objects((step.get("response") or {}).get("body")):
                metadata = obj["metadata"]
                found[obj["kind"], metadata.get("namespace", ""), metadata["name"]] = obj
    return list(found.values())


def _objects(body):
    if isinstance(body, dict) and body.get("kind") in KINDS and "apiVersion" in body:
        text = PLACEHOLDER.sub(lambda match: _VALUES.get(match[1], f"{match[1]}-{match[2]}"), json.dumps(body))
        yield json.loads(REPEATED.sub(lambda match: match[2] * int(match[1]), text))
    elif isinstance(body, dict):
        yield from (one for item in body.get("items") or () for one in _objects({**item, **_kind_of(body, item)}))


def _kind_of(body, item):
    return {"kind": item.get("kind", body["kind"].removesuffix("List")), "apiVersion": body["apiVersion"]}


def test_what_a_real_server_answers_is_understood():
    real = [one for one in real_objects() if not REFERENCE.search(json.dumps(one))]
    kinds = Counter(one["kind"] for one in real)
    assert kinds["Pod"] > 50, kinds
    assert {"Node", "Deployment", "DaemonSet", "Job", "PodDisruptionBudget", "Service", "VolumeAttachment"} <= set(
        kinds
    )
    nodes = [one for one in yaml.safe_load(KUBEADM)["items"] if one["kind"] == "Node"]
    state = read_state(json.dumps({"kind": "List", "items": [*nodes, *real]}).encode(), "state")
    assert len(state.nodes) == len(nodes) + kinds["Node"]


def test_a_cluster_of_real_objects_is_simulated():
    real = [one for one in real_objects() if not REFERENCE.search(json.dumps(one))]
    nodes = [one for one in yaml.safe_load(KUBEADM)["items"] if one["kind"] == "Node"]
    data = json.dumps({"kind": "List", "items": [*nodes, *real]}).encode()
    rehearsal, found, pods, _ = played(data, "timeline: {1m: reboot worker-1}\nlasts: 4m")
    assert found.lasts == 240
    assert [one.node for one in rehearsal.cluster.truth.powers if one.what == "pressed"] == ["worker-1"]
    assert pods


# -- any part of it will do --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({one["kind"] for one in yaml.safe_load(KUBEADM)["items"]} - {"Node"}))
def test_a_file_without_one_kind(kind):
    whole = yaml.safe_load(KUBEADM)
    whole["items"] = [one for one in whole["items"] if one["kind"] != kind]
    _, found, _, _ = played(json.dumps(whole).encode(), "timeline: {1m: reboot worker-1}\nlasts: 4m")
    assert not found.violations


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_nodes_pods_and_one_kind(kind):
    whole = yaml.safe_load(KUBEADM)
    whole["items"] = [one for one in whole["items"] if one["kind"] in ("Node", "Pod", kind)]
    _, found, _, _ = played(json.dumps(whole).encode(), "timeline: {1m: reboot worker-1}\nlasts: 4m")
    assert not found.violations
