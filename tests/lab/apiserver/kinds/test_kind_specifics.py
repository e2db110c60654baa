"""What single kinds have of their own: addresses, versions, scales, finalizers, and the answers to deletions."""

import pytest
from support.lab.kind_objects import CLAIM, NAMESPACE, PATHS, TO_END, WORKLOAD, fields, with_api

from lastcall_lab.apiserver.kinds.jobs import JobKind
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions, DependentsPolicy

OBJECT_AFTER_DELETE = {
    "services": {"spec": {"ports": [{"port": 1}]}},
    "storageclasses": {"provisioner": "a/b"},
    "csinodes": {"spec": {}},
    "serviceaccounts": {},
}
STATUS_AFTER_DELETE = {
    "configmaps": {},
    "nodes": {},
    "deployments": WORKLOAD,
    "leases": {},
    "priorityclasses": {"value": 1},
    "events": {"involvedObject": {"namespace": NAMESPACE}},
}


@pytest.mark.parametrize("resource", [*OBJECT_AFTER_DELETE, *STATUS_AFTER_DELETE])
def test_what_a_deletion_answers(resource):
    async def test(api):
        said = {**OBJECT_AFTER_DELETE, **STATUS_AFTER_DELETE}[resource]
        obj = await api.make(resource, "x", **said)
        _, _, answer = await api.call("DELETE", f"{PATHS[resource]}/x")
        expected = obj["kind"] if resource in OBJECT_AFTER_DELETE else "Status"
        assert answer["kind"] == expected

    with_api(test)


def test_a_status_is_written_by_its_subresource_alone():
    async def test(api):
        await api.make("deployments", "x", **WORKLOAD, status={"replicas": 5})
        _, _, obj = await api.change("deployments", "x", {"status": {"replicas": 5}})
        assert obj["status"] == {}
        body = {"status": {"replicas": 5}, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}}
        _, _, obj = await api.change("deployments", "x", body, "/status")
        assert (obj["status"], obj["spec"]["replicas"]) == ({"replicas": 5}, 1)
        assert "labels" not in obj["metadata"]
        status, _, answer = await api.change("deployments", "x", {"status": {"readyReplicas": 6}}, "/status")
        assert (status, fields(answer)) == (422, ["status.readyReplicas"])

    with_api(test)


def test_the_status_of_a_node_may_bring_labels():
    async def test(api):
        await api.make("nodes", "x")
        body = {"metadata": {"labels": {"a": "b"}}, "status": {"capacity": {"cpu": "4"}}}
        _, _, node = await api.change("nodes", "x", body, "/status")
        assert node["metadata"]["labels"] == {"a": "b"}
        assert node["status"]["allocatable"] == {"cpu": "4"}

    with_api(test)


def test_a_job_is_finished_by_a_complete_status():
    async def test(api):
        await api.make("jobs", "x", spec={"template": TO_END})
        conditions = [{"type": "Complete", "status": "True"}]
        status, _, answer = await api.change("jobs", "x", {"status": {"conditions": conditions}}, "/status")
        assert (status, fields(answer)) == (422, ["status.conditions", "status.completionTime", "status.startTime"])
        conditions.append({"type": "SuccessCriteriaMet", "status": "True"})
        time = "2027-01-15T08:00:00Z"
        done = {"conditions": conditions, "startTime": time, "completionTime": time, "succeeded": 1}
        status, _, job = await api.change("jobs", "x", {"status": done}, "/status")
        assert status == 200, job
        status, _, answer = await api.change("jobs", "x", {"status": {"succeeded": 0}}, "/status")
        assert "cannot decrease the succeeded counter" in answer["message"]

    with_api(test)


def test_who_deletes_a_job_is_told_about_its_pods():
    assert JobKind.dependents is DependentsPolicy.ORPHANED
    assert len(JobKind().deletion_warnings(DeleteOptions())) == 1
    assert not JobKind().deletion_warnings(DeleteOptions(propagation="Orphan"))


def test_addresses_and_ports_are_given_once_and_come_back():
    async def test(api):
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        made = [(await api.make("services", f"s{number}", spec=spec))["spec"] for number in range(20)]
        addresses = {one["clusterIP"] for one in made}
        ports = {one["ports"][0]["nodePort"] for one in made}
        assert (len(addresses), len(ports)) == (20, 20)
        assert all(address.startswith("10.96.") for address in addresses)
        taken = made[0]["clusterIP"]
        body = {"metadata": {"name": "t"}, "spec": {"clusterIP": taken, "ports": [{"port": 80}]}}
        status, _, answer = await api.call("POST", PATHS["services"], body)
        assert status == 422
        assert "provided IP is already allocated" in answer["message"]
        await api.call("DELETE", f"{PATHS['services']}/s0")
        status, _, answer = await api.call("POST", PATHS["services"], body)
        assert (status, answer["spec"]["clusterIPs"]) == (201, [taken])

    with_api(test)


def test_a_service_keeps_what_it_was_given():
    async def test(api):
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        before = (await api.make("services", "s", spec=spec))["spec"]
        body = {"metadata": {"name": "s"}, "spec": {**spec, "selector": {"a": "b"}}}
        _, _, after = await api.call("PUT", f"{PATHS['services']}/s", body)
        assert after["spec"] == {**before, "selector": {"a": "b"}}
        _, _, inner = await api.change("services", "s", {"spec": {"type": "ClusterIP"}})
        assert inner["spec"]["clusterIP"] == before["clusterIP"]
        assert "nodePort" not in inner["spec"]["ports"][0]
        assert "externalTrafficPolicy" not in inner["spec"]

    with_api(test)


def test_the_same_seed_gives_the_same_addresses():
    found = []

    async def test(api):
        found.append((await api.make("services", "s", spec={"ports": [{"port": 80}]}))["spec"]["clusterIP"])

    with_api(test)
    with_api(test)
    assert found[0] == found[1]


def test_one_event_in_two_versions():
    async def test(api):
        about = {"kind": "Pod", "namespace": NAMESPACE, "name": "p"}
        await api.make("events", "e", involvedObject=about, reason="R", message="m", count=2)
        _, _, new = await api.call("GET", f"{PATHS['newevents']}/e")
        assert (new["apiVersion"], new["regarding"], new["note"]) == ("events.k8s.io/v1", about, "m")
        assert new["deprecatedCount"] == 2
        assert "message" not in new
        for path, selector in ((PATHS["events"], "involvedObject.name=p"), (PATHS["newevents"], "regarding.name=p")):
            _, _, listed = await api.call("GET", f"{path}?fieldSelector={selector}")
            assert len(listed["items"]) == 1
            _, _, listed = await api.call("GET", f"{path}?fieldSelector={selector}x")
            assert not listed["items"]
        status, _, _ = await api.call("GET", f"{PATHS['newevents']}?fieldSelector=involvedObject.name=p")
        assert status == 400

    with_api(test)


SELECTED = [
    ("secrets", {"type": "a/b"}, "type=a/b"),
    ("nodes", {"spec": {"unschedulable": True}}, "spec.unschedulable=true"),
    ("nodes", {}, "spec.unschedulable=false"),
    ("jobs", {"spec": {"template": TO_END}}, "status.successful=0"),
    ("services", {"spec": {"ports": [{"port": 1}]}}, "spec.type=ClusterIP"),
]


@pytest.mark.parametrize(("resource", "said", "selector"), SELECTED, ids=[one[2] for one in SELECTED])
def test_field_selectors(resource, said, selector):
    async def test(api):
        await api.make(resource, "x", **said)
        _, _, listed = await api.call("GET", f"{PATHS[resource]}?fieldSelector={selector}")
        assert [one["metadata"]["name"] for one in listed["items"]] == ["x"]
        _, _, listed = await api.call("GET", f"{PATHS[resource]}?fieldSelector={selector.replace('=', '!=')}")
        assert not listed["items"]

    with_api(test)


def test_a_lease_is_replaced_by_who_knows_its_version():
    async def test(api):
        lease = await api.make("leases", "x", spec={"holderIdentity": "a"})
        body = {"metadata": {"name": "x"}, "spec": {"holderIdentity": "b"}}
        status, _, answer = await api.call("PUT", f"{PATHS['leases']}/x", body)
        assert (status, fields(answer)) == (422, ["metadata.resourceVersion"])
        body["metadata"]["resourceVersion"] = lease["metadata"]["resourceVersion"]
        assert (await api.call("PUT", f"{PATHS['leases']}/x", body))[0] == 200
        assert (await api.call("PUT", f"{PATHS['leases']}/x", body))[0] == 409
        assert (await api.call("PUT", f"{PATHS['leases']}/y", {"metadata": {"name": "y"}}))[0] == 201

    with_api(test)


def test_scale():
    async def test(api):
        await api.make("statefulsets", "x", **WORKLOAD)
        _, _, scale = await api.change("statefulsets", "x", {"spec": {"replicas": 3}}, "/scale")
        assert (scale["kind"], scale["spec"], scale["status"]) == (
            "Scale",
            {"replicas": 3},
            {"replicas": 0, "selector": "a=b"},
        )
        _, _, whole = await api.call("GET", f"{PATHS['statefulsets']}/x")
        assert (whole["spec"]["replicas"], whole["metadata"]["generation"]) == (3, 2)
        await api.change("statefulsets", "x", {"spec": {"replicas": 9}}, "/scale?dryRun=All")
        _, _, scale = await api.call("GET", f"{PATHS['statefulsets']}/x/scale")
        assert scale["spec"] == {"replicas": 3}
        _, _, scale = await api.change("statefulsets", "x", {"spec": {"replicas": 0}}, "/scale")
        assert scale["spec"] == {}
        status, _, _ = await api.change("statefulsets", "x", {"spec": {"replicas": "3"}}, "/scale")
        assert status == 422
        stale = {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"replicas": 1}}
        assert (await api.call("PUT", f"{PATHS['statefulsets']}/x/scale", stale))[0] == 409

    with_api(test)


def test_claims_and_volumes_are_protected():
    async def test(api):
        await api.make(
            "storageclasses",
            "standard",
            provisioner="a/b",
        )
        await api.change(
            "storageclasses",
            "standard",
            {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        )
        claim = await api.make("persistentvolumeclaims", "x", spec=CLAIM)
        assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert (claim["spec"]["storageClassName"], claim["status"]) == ("standard", {"phase": "Pending"})
        _, _, going = await api.call("DELETE", f"{PATHS['persistentvolumeclaims']}/x")
        assert going["metadata"]["deletionTimestamp"]
        source = {"csi": {"driver": "d", "volumeHandle": "h"}}
        volume = await api.make(
            "persistentvolumes",
            "x",
            spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source},
        )
        assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        since = volume["status"]["lastPhaseTransitionTime"]
        await api.pause(5)
        _, _, volume = await api.change("persistentvolumes", "x", {"status": {"phase": "Available"}}, "/status")
        assert volume["status"]["lastPhaseTransitionTime"] > since

    with_api(test)


def test_a_bound_claim_grows_and_does_not_shrink():
    async def test(api):
        await api.make("storageclasses", "c", provisioner="p", allowVolumeExpansion=True)
        await api.make("persistentvolumeclaims", "x", spec={**CLAIM, "storageClassName": "c"})
        bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
        await api.change("persistentvolumeclaims", "x", bound, "/status")
        for size, expected in (("2Gi", 200), ("512Mi", 422)):
            body = {"spec": {"resources": {"requests": {"storage": size}}}}
            assert (await api.change("persistentvolumeclaims", "x", body))[0] == expected

    with_api(test)


def test_a_kubelet_may_not_ask_for_everything():
    async def test(api):
        await api.make("nodes", "n1")
        kubelet = {"user": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}
        status, _, answer = await api.call("DELETE", f"{PATHS['nodes']}/n1", user=kubelet)
        why = 'User "system:node:n1" cannot delete resource "nodes" in API group "" at the cluster scope'
        assert (status, answer["message"]) == (403, f'nodes "n1" is forbidden: {why}')
        status, _, answer = await api.call("GET", PATHS["deployments"], user=kubelet)
        assert answer["message"].endswith('in API group "apps" in the namespace "kinds"')
        assert (await api.call("GET", f"{PATHS['nodes']}/n1", user=kubelet))[0] == 200

    with_api(test)
