"""What the lab answers where no recording tells: nodes, budgets, storage, services. Each row names its source."""

import pytest
from support.lab.pod_requests import MERGE, with_api

NODES, SERVICES = "/api/v1/nodes", "/api/v1/namespaces/default/services"
VOLUMES, CLAIMS = "/api/v1/persistentvolumes", "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ATTACHMENTS, DRIVERS = "/apis/storage.k8s.io/v1/volumeattachments", "/apis/storage.k8s.io/v1/csidrivers"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PORTS = {"ports": [{"port": 80}]}
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
CSI = {**VOLUME, "csi": {"driver": "a", "volumeHandle": "h"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ATTACHED = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}
BALANCER = {**PORTS, "type": "LoadBalancer"}


def row(source, target, body, said):
    """``source`` is where upstream refuses it; ``said`` is a part of the 422's message."""
    return pytest.param(target, body, said, id=f"{source}: {said}"[:90])


def spec(**fields):
    return {"spec": fields}


REFUSED = [
    row("ValidateNodeResources", NODES, {"status": {"capacity": {"cpu": "-1"}}}, "status.capacity.cpu: Invalid value"),
    row("ValidateNodeResources", NODES, {"status": {"capacity": {"pods": "1.5"}}}, "must be an integer"),
    row("ValidateService", SERVICES, spec(**PORTS, trafficDistribution="X"), "spec.trafficDistribution: Unsupported"),
    row("ValidateService", SERVICES, spec(**PORTS, loadBalancerClass="a/b"), "spec.loadBalancerClass: Forbidden"),
    row(
        "ValidateService", SERVICES, spec(**PORTS, loadBalancerSourceRanges=["10.0.0.0/8"]), "LoadBalancerSourceRanges"
    ),
    row("ValidateEndpointIP", SERVICES, spec(**PORTS, externalIPs=["127.0.0.1"]), "may not be in the loopback range"),
    row(
        "validateAffinityTimeout",
        SERVICES,
        spec(**PORTS, sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
        "must be greater than 0 and less than 86400",
    ),
    row("initIPFamilyFields", SERVICES, spec(**PORTS, ipFamilies=["IPv6"]), "not configured on this cluster"),
    row(
        "initIPFamilyFields",
        SERVICES,
        spec(**PORTS, ipFamilyPolicy="RequireDualStack"),
        "not configured for dual-stack",
    ),
    row(
        "ValidateServiceClusterIPsRelatedFields", SERVICES, spec(**PORTS, ipFamilyPolicy="X"), "ipFamilyPolicy: Unsupp"
    ),
    row("validatePorts", SLICES, {"addressType": "IPv4", "ports": [{"name": "A_"}]}, "ports[0].name: Invalid value"),
    row("validatePorts", SLICES, {"addressType": "IPv4", "ports": [{}, {}]}, 'ports[1].name: Duplicate value: ""'),
    row(
        "validateHints",
        SLICES,
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "z"}] * 2}}]},
        "endpoints[0].hints.forZones[1].name: Duplicate",
    ),
    row(
        "ValidateEndpointIP", SLICES, {"addressType": "IPv4", "endpoints": [{"addresses": ["0.0.0.0"]}]}, "unspecified"
    ),
    row("validateVolumeNodeAffinity", VOLUMES, spec(**CSI, nodeAffinity={}), "must specify required node constraints"),
    row("ValidateNodeSelector", VOLUMES, spec(**CSI, nodeAffinity={"required": {}}), "at least one node selector term"),
    row("ValidatePersistentVolumeSpec", VOLUMES, spec(**CSI, storageClassName="A_"), "spec.storageClassName: Invalid"),
    row(
        "ValidatePersistentVolumeSpec",
        VOLUMES,
        spec(**VOLUME, hostPath={"path": "//"}, persistentVolumeReclaimPolicy="Recycle"),
        "may not be 'recycle' for a hostPath mount of '/'",
    ),
    row(
        "ValidateVolumeAttachment",
        ATTACHMENTS,
        spec(**{**ATTACHED, "source": {"persistentVolumeName": "A_"}}),
        "spec.source.persistentVolumeName: Invalid",
    ),
    row("validateTokenRequests", DRIVERS, spec(tokenRequests=[{"audience": "a"}] * 2), "tokenRequests[1].audience"),
    row(
        "validateTokenRequests", DRIVERS, spec(tokenRequests=[{"audience": "a", "expirationSeconds": 1}]), "10 minutes"
    ),
]


@pytest.mark.parametrize(("target", "body", "said"), REFUSED)
def test_refused(target, body, said):
    @with_api
    async def scenario(api):
        code, _, message = await api.refused("POST", target, {"metadata": {"name": "x"}, **body})
        assert code == 422
        assert said in message

    scenario()


CHANGES = [
    row("ValidateNodeUpdate", NODES, [{}, spec(externalID="x")], "spec.externalID: Forbidden: may not be updated"),
    row(
        "validateVolumeError",
        ATTACHMENTS,
        [spec(**ATTACHED), {"status": {"attachError": {"errorCode": -1}}}],
        "status.attachError.errorCode: Invalid value",
    ),
    row(
        "validateVolumeError",
        ATTACHMENTS,
        [spec(**ATTACHED), {"status": {"detachError": {"message": "x" * 1025}}}],
        "status.detachError.message: Too long: may not be more than 262144 bytes",
    ),
    row(
        "ValidateLoadBalancerStatus",
        SERVICES,
        [spec(**PORTS), {"status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}}],
        "may only be used when `spec.type` is 'LoadBalancer'",
    ),
    row(
        "validateLoadBalancerClassField",
        SERVICES,
        [spec(**BALANCER), spec(loadBalancerClass="a/b")],
        "may not change once set",
    ),
    row(
        "ValidateCondition",
        BUDGETS,
        [spec(), {"status": {"conditions": [{"type": "A", "status": "Perhaps", "reason": "-"}]}}],
        'status.conditions[0].status: Unsupported value: "Perhaps": supported values: "False", "True", "Unknown"',
    ),
]


@pytest.mark.parametrize(("target", "body", "said"), CHANGES)
def test_changes_that_are_refused(target, body, said):
    @with_api
    async def scenario(api):
        before, change = body
        await api.good("POST", target, {"metadata": {"name": "x"}, **before})
        part = "/status" if "status" in change else ""
        code, _, message = await api.refused("PATCH", f"{target}/x{part}", change, media=MERGE)
        assert code == 422
        assert said in message

    scenario()


@with_api
async def test_classes_of_the_system_stay(api):
    """``priorityclass.REST.Delete``."""
    code, reason, message = await api.refused("DELETE", f"{PRIORITIES}/system-node-critical")
    assert (code, reason) == (403, "Forbidden")
    assert message.endswith("this is a system priority class and cannot be deleted")


@with_api
async def test_a_budget_may_have_any_finalizer(api):
    """Its rules are the generic ones, without ``validateKubeFinalizerName``."""
    await api.good("POST", BUDGETS, {"metadata": {"name": "b", "finalizers": ["hold"]}})


@with_api
async def test_a_node_has_no_configuration_source(api):
    """``node.dropDisabledFields``."""
    made = await api.good("POST", NODES, {"metadata": {"name": "x"}, **spec(configSource={"configMap": {}})})
    assert "configSource" not in made["spec"]


@with_api
async def test_only_a_class_lets_claims_grow(api):
    """Plugin PersistentVolumeClaimResize."""
    await api.good("POST", CLAIMS, {"metadata": {"name": "x"}, "spec": CLAIM})
    await api.good("PATCH", f"{CLAIMS}/x/status", {"status": {"phase": "Bound"}}, media=MERGE)
    code, _, message = await api.refused(
        "PATCH", f"{CLAIMS}/x", spec(resources={"requests": {"storage": "2Gi"}}), media=MERGE
    )
    assert code == 403
    assert "only dynamically provisioned pvc can be resized" in message


@with_api
async def test_a_data_source_is_said_in_both_ways_or_dropped(api):
    """``NormalizeDataSources`` and ``EnforceDataSourceBackwardsCompatibility``."""
    source = {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "o"}
    made = await api.good("POST", CLAIMS, {"metadata": {"name": "x"}, "spec": {**CLAIM, "dataSource": source}})
    assert made["spec"]["dataSourceRef"]["name"] == "o"
    other = {"kind": "Other", "name": "o"}
    made = await api.good("POST", CLAIMS, {"metadata": {"name": "y"}, "spec": {**CLAIM, "dataSource": other}})
    assert not made["spec"].keys() & {"dataSource", "dataSourceRef"}


@with_api
async def test_half_bytes_are_warned_about(api):
    """``GetWarningsForPersistentVolumeClaimSpec``."""
    await api.good(
        "POST", CLAIMS, {"metadata": {"name": "x"}, "spec": {**CLAIM, "resources": {"requests": {"storage": "1.5"}}}}
    )
    assert 'fractional byte value \\"1500m\\" is invalid' in api.warnings[0]


@with_api
async def test_a_local_load_balancer_has_a_port_for_health_checks(api):
    """``Allocators.allocHealthCheckNodePort``, ``updateHealthCheckNodePort``, and the default of ``ipMode``."""
    local = {**BALANCER, "externalTrafficPolicy": "Local"}
    made = await api.good("POST", SERVICES, {"metadata": {"name": "x"}, "spec": local})
    assert 30000 <= made["spec"]["healthCheckNodePort"] < 32768
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}}
    made = await api.good("PATCH", f"{SERVICES}/x/status", status, media=MERGE)
    assert made["status"]["loadBalancer"]["ingress"] == [{"ip": "1.1.1.1", "ipMode": "VIP"}]
    made = await api.good("PATCH", f"{SERVICES}/x", spec(externalTrafficPolicy="Cluster"), media=MERGE)
    assert "healthCheckNodePort" not in made["spec"]


@with_api
async def test_old_topology_of_slices_is_dropped_and_names_are_warned_about(api):
    """``dropTopologyOnV1``, ``warnOnDeprecatedAddressType``."""
    endpoint = {"addresses": ["a.b"], "deprecatedTopology": {"a": "b"}}
    made = await api.good("POST", SLICES, {"metadata": {"name": "x"}, "addressType": "FQDN", "endpoints": [endpoint]})
    assert made["endpoints"] == [{"addresses": ["a.b"], "conditions": {}}]
    assert "FQDN endpoints are deprecated" in api.warnings[0]
