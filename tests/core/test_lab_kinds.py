"""What the built-in kinds default to, what they refuse and in which words, and what their changes may be."""

import json

import pytest
from support.lab_api import LabApi

from lastcall.lab import virtual
from lastcall.lab.apiserver.catalog import built_in
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Dependents, Options
from lastcall.lab.apiserver.kinds.jobs import Job

NAMESPACE = "kinds"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}
TO_END = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

PATHS = {
    "deployments": "/apis/apps/v1/namespaces/kinds/deployments",
    "replicasets": "/apis/apps/v1/namespaces/kinds/replicasets",
    "statefulsets": "/apis/apps/v1/namespaces/kinds/statefulsets",
    "daemonsets": "/apis/apps/v1/namespaces/kinds/daemonsets",
    "controllerrevisions": "/apis/apps/v1/namespaces/kinds/controllerrevisions",
    "jobs": "/apis/batch/v1/namespaces/kinds/jobs",
    "cronjobs": "/apis/batch/v1/namespaces/kinds/cronjobs",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/kinds/poddisruptionbudgets",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "nodes": "/api/v1/nodes",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/kinds/leases",
    "services": "/api/v1/namespaces/kinds/services",
    "endpoints": "/api/v1/namespaces/kinds/endpoints",
    "endpointslices": "/apis/discovery.k8s.io/v1/namespaces/kinds/endpointslices",
    "events": "/api/v1/namespaces/kinds/events",
    "newevents": "/apis/events.k8s.io/v1/namespaces/kinds/events",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "persistentvolumeclaims": "/api/v1/namespaces/kinds/persistentvolumeclaims",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
    "csinodes": "/apis/storage.k8s.io/v1/csinodes",
    "csidrivers": "/apis/storage.k8s.io/v1/csidrivers",
    "volumeattachments": "/apis/storage.k8s.io/v1/volumeattachments",
    "configmaps": "/api/v1/namespaces/kinds/configmaps",
    "secrets": "/api/v1/namespaces/kinds/secrets",
    "serviceaccounts": "/api/v1/namespaces/kinds/serviceaccounts",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1/namespaces/kinds/rolebindings",
    "networkpolicies": "/apis/networking.k8s.io/v1/namespaces/kinds/networkpolicies",
    "horizontalpodautoscalers": "/apis/autoscaling/v2/namespaces/kinds/horizontalpodautoscalers",
    "mutatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}


class Api(LabApi):
    """Asks with JSON, and raises what is no success."""

    async def call(self, method, path, body=None, *, patch=False, user=None):
        kind = "application/merge-patch+json" if patch else "application/json"
        data = b"" if body is None else json.dumps(body).encode()
        return await self.ask(method, path, {"content-type": kind}, data, user)

    async def make(self, resource, name, **more):
        """The created object."""
        status, _, obj = await self.call("POST", PATHS[resource], {"metadata": {"name": name}, **more})
        assert status == 201, obj
        return obj

    async def change(self, resource, name, body, part=""):
        """Status, headers and object of a merge patch."""
        return await self.call("PATCH", f"{PATHS[resource]}/{name}{part}", body, patch=True)


def with_api(test):
    """Runs in virtual time, with a server that has the namespace."""

    async def run():
        api = Api(virtual.VirtualClock())
        await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await test(api)

    virtual.run(run())


def fields(obj):
    return [cause["field"] for cause in obj["details"]["causes"]]


DEFAULTS = [
    (
        "statefulsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
    ),
    (
        "deployments",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        {
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "progressDeadlineSeconds": 600,
        },
    ),
    ("jobs", {"spec": {"template": TO_END, "parallelism": 3}}, {"parallelism": 3, "backoffLimit": 6}),
    (
        "cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TO_END}}}},
        {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3},
    ),
    ("persistentvolumeclaims", {"spec": CLAIM}, {"volumeMode": "Filesystem"}),
    (
        "csidrivers",
        {"spec": {}},
        {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"]},
    ),
    ("networkpolicies", {"spec": {"egress": [{}]}}, {"policyTypes": ["Ingress", "Egress"], "podSelector": {}}),
    (
        "services",
        {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}},
        {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True, "sessionAffinity": "None"},
    ),
]


@pytest.mark.parametrize(("resource", "said", "expected"), DEFAULTS, ids=[one[0] for one in DEFAULTS])
def test_defaults(resource, said, expected):
    async def test(api):
        spec = (await api.make(resource, "x", **said))["spec"]
        assert {name: spec[name] for name in expected} == expected

    with_api(test)


REFUSED = [
    ("deployments", {"spec": {"template": TEMPLATE}}, ["spec.selector", "spec.template.metadata.labels"]),
    ("deployments", {"spec": {"selector": {}, "template": TEMPLATE}}, ["spec.selector"]),
    (
        "deployments",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "replicas": -1, "minReadySeconds": 600}},
        ["spec.replicas", "spec.progressDeadlineSeconds"],
    ),
    (
        "deployments",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}},
            }
        },
        ["spec.strategy.rollingUpdate.maxUnavailable"],
    ),
    (
        "daemonsets",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
            }
        },
        ["spec.updateStrategy.rollingUpdate.maxSurge"],
    ),
    (
        "replicasets",
        {"spec": {"selector": SELECTOR, "template": {**TEMPLATE, "spec": TO_END["spec"]}}},
        ["spec.template.spec.restartPolicy"],
    ),
    (
        "statefulsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "podManagementPolicy": "Sometimes"}},
        ["spec.podManagementPolicy"],
    ),
    ("jobs", {"spec": {"template": TEMPLATE}}, ["spec.template.spec.restartPolicy"]),
    ("jobs", {"spec": {"template": TO_END, "completionMode": "Indexed", "parallelism": 1}}, ["spec.completions"]),
    (
        "jobs",
        {"spec": {"template": {**TO_END, "metadata": {"labels": {"job-name": "y"}}}}},
        [*["spec.template.metadata.labels"] * 2],
    ),
    ("cronjobs", {"spec": {"schedule": "* *", "jobTemplate": {"spec": {"template": TO_END}}}}, ["spec.schedule"]),
    ("controllerrevisions", {"revision": -1}, ["data", "revision"]),
    ("poddisruptionbudgets", {"spec": {"minAvailable": 1, "maxUnavailable": "x"}}, ["spec", "spec.maxUnavailable"]),
    ("priorityclasses", {"value": 1_000_000_001}, ["value"]),
    (
        "nodes",
        {"spec": {"taints": [{"key": "k", "value": "!", "effect": ""}]}},
        ["taints[0].value", "taints[0].effect"],
    ),
    ("nodes", {"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}}, ["spec.podCIDRs"]),
    ("leases", {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}, ["leaseDurationSeconds", "Transitions"]),
    ("services", {"spec": {}}, ["spec.ports"]),
    ("services", {"spec": {"ports": [{"port": 1}, {"port": 1}]}}, ["ports[0].name", "ports[1].name", "spec.ports[1]"]),
    ("services", {"spec": {"type": "ExternalName"}}, ["spec.externalName"]),
    ("services", {"spec": {"ports": [{"port": 1}], "clusterIP": "10.97.0.1"}}, ["spec.clusterIPs"]),
    ("services", {"spec": {"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]}}, ["spec.ports[0].nodePort"]),
    ("endpoints", {"subsets": [{"addresses": [{"ip": "x"}], "ports": [{"port": 1}]}]}, ["addresses[0].ip"]),
    ("endpointslices", {"addressType": "IPv6", "endpoints": [{"addresses": ["10.0.0.1"]}]}, [".addresses"]),
    ("events", {"involvedObject": {"namespace": "other"}}, ["involvedObject.namespace"]),
    (
        "newevents",
        {"regarding": {"namespace": "kinds"}, "eventTime": None},
        ["eventTime", *["re"] * 2, "ac", "re", "t"],
    ),
    ("persistentvolumes", {"spec": {}}, ["accessModes", "capacity", "capacity", "spec"]),
    ("persistentvolumeclaims", {"spec": {}}, ["spec.accessModes", "spec.resources[storage]"]),
    ("storageclasses", {"reclaimPolicy": "Recycle"}, ["provisioner", "reclaimPolicy"]),
    ("csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": ""}]}}, ["spec.drivers[0].nodeID"]),
    ("volumeattachments", {"spec": {"attacher": "a", "nodeName": "n"}}, ["spec.source"]),
    ("configmaps", {"data": {"a/b": "", "c": ""}, "binaryData": {"c": "eA=="}}, ["data[a/b]", "data[c]"]),
    ("secrets", {"type": "kubernetes.io/tls", "stringData": {"tls.crt": ""}}, ["data[tls.key]"]),
    ("clusterroles", {"rules": [{"nonResourceURLs": ["/x"]}]}, ["rules[0].verbs"]),
    (
        "clusterrolebindings",
        {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]},
        ["roleRef.kind", "subjects[0].namespace"],
    ),
    (
        "horizontalpodautoscalers",
        {"spec": {"minReplicas": 3, "maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d"}}},
        ["spec.maxReplicas"],
    ),
    (
        "mutatingwebhookconfigurations",
        {"webhooks": [{"name": "a.b.c", "clientConfig": {"url": "https://u@x/?q"}, "admissionReviewVersions": ["v1"]}]},
        ["sideEffects", "clientConfig.url", "clientConfig.url"],
    ),
]


@pytest.mark.parametrize(
    ("resource", "said", "expected"), REFUSED, ids=[f"{i}-{one[0]}" for i, one in enumerate(REFUSED)]
)
def test_refused(resource, said, expected):
    async def test(api):
        status, _, answer = await api.call("POST", PATHS[resource], {"metadata": {"name": "x"}, **said})
        assert status == 422, answer
        found = fields(answer)
        assert len(found) == len(expected), answer["message"]
        assert all(part in field for part, field in zip(expected, found, strict=True)), found

    with_api(test)


WORKLOAD = {"spec": {"selector": SELECTOR, "template": TEMPLATE}}
CHANGES = [
    ("deployments", WORKLOAD, {"spec": {"selector": {"matchLabels": {"c": "d"}}}}, "field is immutable"),
    ("deployments", WORKLOAD, {"spec": {"replicas": 7}}, ""),
    ("statefulsets", WORKLOAD, {"spec": {"serviceName": "other"}}, "updates to statefulset spec for fields other than"),
    ("statefulsets", WORKLOAD, {"spec": {"minReadySeconds": 7, "replicas": 0}}, ""),
    ("jobs", {"spec": {"template": TO_END}}, {"spec": {"completions": 2}}, "field is immutable"),
    (
        "jobs",
        {"spec": {"template": TO_END, "completionMode": "Indexed", "completions": 2, "parallelism": 2}},
        {"spec": {"completions": 3, "parallelism": 3}},
        "",
    ),
    (
        "jobs",
        {"spec": {"template": TO_END, "suspend": True}},
        {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
        "",
    ),
    (
        "jobs",
        {"spec": {"template": TO_END}},
        {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
        "field is immutable",
    ),
    ("nodes", {"spec": {"podCIDR": "10.0.0.0/24"}}, {"spec": {"podCIDR": "10.0.1.0/24"}}, "may not change podCIDR"),
    (
        "volumeattachments",
        {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "m"}},
        "field is immutable",
    ),
    (
        "persistentvolumes",
        {"spec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}},
        {"spec": {"hostPath": {"path": "/b"}}},
        '-  "Path": "/a",\n+  "Path": "/b",',
    ),
    ("nodes", {"spec": {"providerID": "a"}}, {"spec": {"providerID": "b"}}, "may not change providerID"),
    ("nodes", {}, {"spec": {"unschedulable": True}}, ""),
    ("persistentvolumeclaims", {"spec": CLAIM}, {"spec": {"volumeName": "v"}}, ""),
    ("persistentvolumeclaims", {"spec": CLAIM}, {"spec": {"volumeMode": "Block"}}, "spec is immutable after creation"),
    ("storageclasses", {"provisioner": "a/b"}, {"provisioner": "a/c"}, "field is immutable"),
    ("priorityclasses", {"value": 1}, {"value": 2}, "may not be changed in an update."),
    (
        "configmaps",
        {"data": {"a": "b"}, "immutable": True},
        {"data": {"a": "c"}},
        "field is immutable when `immutable`",
    ),
    ("configmaps", {"immutable": True}, {"metadata": {"labels": {"a": "b"}}}, ""),
    ("secrets", {}, {"type": "other"}, "field is immutable"),
    ("rolebindings", {"roleRef": {"kind": "Role", "name": "r"}}, {"roleRef": {"name": "s"}}, "cannot change roleRef"),
    ("endpointslices", {"addressType": "IPv4"}, {"addressType": "IPv6"}, "field is immutable"),
    ("services", {"spec": {"ports": [{"port": 1}]}}, {"spec": {"clusterIP": "10.96.0.9"}}, "may not change once set"),
    ("services", {"spec": {"ports": [{"port": 1}]}}, {"spec": {"type": "ExternalName", "externalName": "a.b"}}, ""),
]


@pytest.mark.parametrize(
    ("resource", "said", "change", "expected"), CHANGES, ids=[f"{i}-{one[0]}" for i, one in enumerate(CHANGES)]
)
def test_changes(resource, said, change, expected):
    async def test(api):
        await api.make(resource, "x", **said)
        status, _, answer = await api.change(resource, "x", change)
        assert status == (422 if expected else 200), answer
        assert expected in answer.get("message", "")

    with_api(test)


GENERATIONS = [
    ("deployments", WORKLOAD, {"spec": {"replicas": 3}}, (1, 2)),
    ("deployments", WORKLOAD, {"metadata": {"labels": {"a": "b"}}}, (1, 1)),
    ("endpointslices", {"addressType": "IPv4"}, {"metadata": {"labels": {"a": "b"}}}, (1, 2)),
    ("priorityclasses", {"value": 1}, {"description": "x"}, (1, 1)),
    ("mutatingwebhookconfigurations", {}, {"metadata": {"labels": {"a": "b"}}}, (1, 1)),
    ("nodes", {}, {"spec": {"unschedulable": True}}, (None, None)),
    ("services", {"spec": {"ports": [{"port": 1}]}}, {"spec": {"ports": [{"port": 2}]}}, (None, None)),
]


@pytest.mark.parametrize(
    ("resource", "said", "change", "expected"), GENERATIONS, ids=[f"{i}-{one[0]}" for i, one in enumerate(GENERATIONS)]
)
def test_generations(resource, said, change, expected):
    async def test(api):
        first = await api.make(resource, "x", **said)
        _, _, second = await api.change(resource, "x", change)
        assert tuple(one["metadata"].get("generation") for one in (first, second)) == expected

    with_api(test)


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
    assert Job.dependents is Dependents.ORPHANED
    assert len(Job().deletion_warnings(Options())) == 1
    assert not Job().deletion_warnings(Options(propagation="Orphan"))


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


WARNINGS = [
    ("deployments", "a.b", WORKLOAD, "metadata.name: this is used in Pod names and hostnames"),
    ("endpoints", "x", {}, "v1 Endpoints is deprecated in v1.33+"),
    (
        "services",
        "x",
        {"spec": {"clusterIP": "None", "sessionAffinity": "ClientIP"}},
        "spec.SessionAffinity is ignored for headless services",
    ),
]


@pytest.mark.parametrize(("resource", "name", "said", "expected"), WARNINGS, ids=[one[0] for one in WARNINGS])
def test_warnings(resource, name, said, expected):
    async def test(api):
        _, headers, _ = await api.call("POST", PATHS[resource], {"metadata": {"name": name}, **said})
        assert expected in headers["warning"][0]

    with_api(test)


def test_every_resource_has_the_names_of_discovery():
    plurals = [one.qualified for one in built_in()]
    assert len(plurals) == len(set(plurals))
    assert {"events", "events.events.k8s.io", "leases.coordination.k8s.io"} < set(plurals)
    assert all(one.singular == one.kind.lower() for one in built_in())


SELECTORS = [
    ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]}, "k in (x,y)"),
    ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "!k"),
    (None, ""),
]


@pytest.mark.parametrize(("selector", "text"), SELECTORS)
def test_selectors_as_text(selector, text):
    assert rules.selector_text(selector) == text


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("In", ["x"], True), ("NotIn", ["x"], False), ("Exists", [], True), ("DoesNotExist", [], False), ("?", [], False)],
)
def test_what_selectors_match(operator, values, expected):
    selector = {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}
    assert rules.matches(selector, {"k": "x"}) is expected


def test_nothing_is_selected_without_a_selector():
    assert not rules.matches(None, {"a": "b"})
    assert rules.matches({}, {"a": "b"})
