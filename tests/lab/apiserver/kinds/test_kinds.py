"""What the built-in kinds default to, what they refuse and in which words, and what their changes may be."""

import pytest
from support.lab.kind_objects import CLAIM, PATHS, SELECTOR, TEMPLATE, TO_END, WORKLOAD, fields, with_api

from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources

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
        ["eventTime", "type"],
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
    plurals = [one.qualified_name for one in built_in_resources()]
    assert len(plurals) == len(set(plurals))
    assert {"events", "events.events.k8s.io", "leases.coordination.k8s.io"} < set(plurals)
    assert all(one.singular == one.kind.lower() for one in built_in_resources())
