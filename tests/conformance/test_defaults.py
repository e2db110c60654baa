"""What the server fills into new volumes, classes, namespaces, secrets and network policies."""

import pytest
from support.conformance.api_client import b64, unique
from support.conformance.objects import meta

from lastcall.adapters.kube.resources import (
    CLAIMS,
    NAMESPACES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    VOLUMES,
    dict_resource,
)

source = pytest.mark.source
CORE = "pkg/apis/core/v1/defaults.go"
SECRETS = dict_resource("", "v1", "secrets")
POLICIES = dict_resource("networking.k8s.io", "v1", "networkpolicies")
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}


@source(CORE)
async def test_defaults_of_claims(api):
    """A file system, Pending, held by the finalizer that protects claims in use."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    made = await api.create(CLAIMS, {**meta("c"), "spec": spec})
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["status"] == {"phase": "Pending"}
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


@source(CORE)
async def test_defaults_of_volumes_of_the_cluster(api):
    """What is made by hand is retained."""
    name = unique("pv")
    made = await api.create(VOLUMES, {**meta(name), "spec": dict(VOLUME)})
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    await api.patch(VOLUMES, name, {"metadata": {"finalizers": None}})


@source("pkg/apis/storage/v1/defaults.go")
async def test_defaults_of_storage_classes(api):
    """Delete, and bind at once."""
    made = await api.create(STORAGE_CLASSES, {**meta(unique("sc")), "provisioner": "example.com/x"})
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")


@source("pkg/apis/scheduling/v1/defaults.go")
async def test_defaults_of_priority_classes(api):
    """They preempt."""
    made = await api.create(PRIORITY_CLASSES, {**meta(unique("pc")), "value": 7})
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    assert "globalDefault" not in made


@source("pkg/registry/core/namespace/strategy.go")
async def test_a_new_namespace(api):
    """Active, with the finalizer of the namespace controller and a label of its own name."""
    name = unique("ns")
    made = await api.create(NAMESPACES, meta(name))
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}


@source("pkg/registry/core/secret/strategy.go")
async def test_text_in_secrets_is_write_only(api):
    """stringData becomes data, over what is there, and is not shown."""
    body = {**meta("s"), "data": {"a": b64("1"), "b": b64("2")}, "stringData": {"a": "3"}}
    made = await api.create(SECRETS, body)
    assert made["data"] == {"a": b64("3"), "b": b64("2")}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


@source("pkg/apis/core/validation/validation.go")
async def test_typed_secrets_have_their_keys(api):
    """A TLS secret has a certificate and a key."""
    status = await api.create(SECRETS, {**meta("s"), "type": "kubernetes.io/tls", "data": {}}).refused(422, "Invalid")
    assert {cause["field"] for cause in status["details"]["causes"]} == {"data[tls.crt]", "data[tls.key]"}


@source("pkg/apis/networking/v1/defaults.go")
async def test_the_types_of_a_policy_follow_its_rules(api):
    """Ingress always, Egress if there are egress rules."""
    made = await api.create(POLICIES, {**meta("n"), "spec": {"podSelector": {}, "egress": [{}]}})
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
