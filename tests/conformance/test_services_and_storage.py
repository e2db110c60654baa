"""What services, claims, volumes and the kinds around them may say: each case is a rule and the field that breaks it."""

import pytest
from support.conformance.api_client import DUPLICATE, FORBIDDEN, INVALID, REQUIRED, UNSUPPORTED, causes, unique
from support.conformance.objects import job, meta, service

from lastcall.adapters.kube.resources import (
    CLAIMS,
    ENDPOINT_SLICES,
    SERVICES,
    STORAGE_CLASSES,
    VOLUMES,
    dict_resource,
)

source = pytest.mark.source
CORE = "pkg/apis/core/validation/validation.go"
CRON_JOBS = dict_resource("batch", "v1", "cronjobs")
SCALERS = dict_resource("autoscaling", "v2", "horizontalpodautoscalers")
POLICIES = dict_resource("networking.k8s.io", "v1", "networkpolicies")

OTHER_RULES = [
    (CRON_JOBS, {"schedule": "often", "jobTemplate": {"spec": job("x")["spec"]}}, INVALID, "spec.schedule"),
    (
        CRON_JOBS,
        {"schedule": "@daily", "concurrencyPolicy": "x", "jobTemplate": {"spec": job("x")["spec"]}},
        UNSUPPORTED,
        "spec.concurrencyPolicy",
    ),
    (
        CRON_JOBS,
        {"schedule": "@daily", "timeZone": "Nowhere/City", "jobTemplate": {"spec": job("x")["spec"]}},
        INVALID,
        "spec.timeZone",
    ),
    (SERVICES, {"ports": []}, REQUIRED, "spec.ports"),
    (SERVICES, {"ports": [{"port": 0}]}, INVALID, "spec.ports[0].port"),
    (SERVICES, {"ports": [{"port": 1}, {"port": 2}]}, REQUIRED, "spec.ports[0].name"),
    (SERVICES, {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}, DUPLICATE, "spec.ports[1]"),
    (SERVICES, {"ports": [{"port": 1, "protocol": "x"}]}, UNSUPPORTED, "spec.ports[0].protocol"),
    (SERVICES, {"ports": [{"port": 1, "nodePort": 30000}]}, FORBIDDEN, "spec.ports[0].nodePort"),
    (SERVICES, {"ports": [{"port": 1}], "type": "x"}, UNSUPPORTED, "spec.type"),
    (SERVICES, {"ports": [{"port": 1}], "sessionAffinity": "x"}, UNSUPPORTED, "spec.sessionAffinity"),
    (SERVICES, {"ports": [{"port": 1}], "clusterIP": "1.2"}, INVALID, "spec.clusterIPs[0]"),
    (SERVICES, {"type": "ExternalName"}, REQUIRED, "spec.externalName"),
    (SERVICES, {"ports": [{"port": 1}], "selector": {"a b": "c"}}, INVALID, "spec.selector"),
    (CLAIMS, {"resources": {"requests": {"storage": "1Gi"}}}, REQUIRED, "spec.accessModes"),
    (CLAIMS, {"accessModes": ["ReadWriteOnce"]}, REQUIRED, "spec.resources[storage]"),
    (
        CLAIMS,
        {"accessModes": ["Sometimes"], "resources": {"requests": {"storage": "1Gi"}}},
        UNSUPPORTED,
        "spec.accessModes",
    ),
    (
        SCALERS,
        {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 0},
        INVALID,
        "spec.maxReplicas",
    ),
    (
        SCALERS,
        {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 1,
            "minReplicas": 2,
        },
        INVALID,
        "spec.maxReplicas",
    ),
    (POLICIES, {"podSelector": {"matchLabels": {"a b": "c"}}}, INVALID, "spec.podSelector.matchLabels"),
    (POLICIES, {"podSelector": {}, "policyTypes": ["x"]}, UNSUPPORTED, "spec.policyTypes[0]"),
]


@source(CORE)
@pytest.mark.parametrize(
    ("kind", "spec", "reason", "field"), OTHER_RULES, ids=[f"{k.plural}-{r}-{f}" for k, _, r, f in OTHER_RULES]
)
async def test_others_that_are_refused(api, kind, spec, reason, field):
    """422 with reason and field."""
    status = await api.create(kind, {**meta(unique("x")), "spec": spec}).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source(CORE)
@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        ({"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}, REQUIRED, "spec.capacity"),
        ({"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}, REQUIRED, "spec.accessModes"),
        ({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}, REQUIRED, "spec"),
    ],
)
async def test_volumes_that_are_refused(api, spec, reason, field):
    """Capacity, modes and one source."""
    status = await api.create(VOLUMES, {**meta(unique("pv")), "spec": spec}).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source("pkg/apis/storage/validation/validation.go")
async def test_storage_classes_that_are_refused(api):
    """They name who provides."""
    status = await api.create(STORAGE_CLASSES, {**meta(unique("sc")), "provisioner": ""}).refused(422, "Invalid")
    assert causes(status)[0] == (REQUIRED, "provisioner")


@source("pkg/apis/discovery/validation/validation.go")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"addressType": "x", "endpoints": []}, "addressType"),
        ({"addressType": "IPv4", "endpoints": [{"addresses": []}]}, "endpoints[0].addresses"),
        ({"addressType": "IPv4", "endpoints": [{"addresses": ["x"]}]}, "endpoints[0].addresses[0]"),
        ({"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}]}, "endpoints[0].addresses[0]"),
    ],
)
async def test_slices_of_endpoints_that_are_refused(api, body, field):
    """Types and addresses."""
    status = await api.create(ENDPOINT_SLICES, {**meta("s"), **body}).refused(422, "Invalid")
    assert field in [found for _, found in causes(status)], status["message"]


@source("pkg/registry/core/service/strategy.go")
async def test_a_service_changes_its_type(api):
    """To NodePort and back; the port of the nodes comes and goes."""
    await api.create(SERVICES, service())
    opened = await api.patch(SERVICES, "s", {"spec": {"type": "NodePort"}})
    assert opened["spec"]["ports"][0]["nodePort"]
    closed = await api.patch(SERVICES, "s", {"spec": {"type": "ClusterIP"}})
    assert "nodePort" not in closed["spec"]["ports"][0]
    assert closed["spec"]["clusterIP"] == opened["spec"]["clusterIP"]
