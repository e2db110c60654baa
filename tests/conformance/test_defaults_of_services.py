"""What the server fills into a new Service: defaults, addresses, and ports of the nodes."""

import pytest
from support.conformance.objects import meta, service

from lastcall.adapters.kube.resources import SERVICES

source = pytest.mark.source
CORE = "pkg/apis/core/v1/defaults.go"


@source(CORE)
async def test_defaults_of_services(api):
    """ClusterIP, TCP, the target's port is the port; the address is given."""
    spec = (await api.create(SERVICES, service()))["spec"]
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert (spec["type"], spec["sessionAffinity"]) == ("ClusterIP", "None")
    assert spec["internalTrafficPolicy"] == "Cluster"
    assert spec["ipFamilyPolicy"] == "SingleStack"
    assert spec["clusterIPs"] == [spec["clusterIP"]]


@source("pkg/registry/core/service/storage/alloc.go")
async def test_a_headless_service_has_no_address(api):
    """clusterIP None is kept."""
    spec = (await api.create(SERVICES, service(clusterIP="None")))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


@source("pkg/registry/core/service/storage/alloc.go")
async def test_an_external_name_has_no_address(api):
    """Nothing is allocated for it."""
    made = await api.create(SERVICES, {**meta("s"), "spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert "clusterIP" not in made["spec"]


@source("pkg/registry/core/service/ipallocator/controller/repairip.go")
async def test_two_services_have_two_addresses(api):
    """And an address that is taken cannot be asked for."""
    one = await api.create(SERVICES, service("one"))
    two = await api.create(SERVICES, service("two"))
    assert one["spec"]["clusterIP"] != two["spec"]["clusterIP"]
    wanted = service("three", clusterIP=one["spec"]["clusterIP"])
    status = await api.create(SERVICES, wanted).refused(422, "Invalid")
    assert "provided IP is already allocated" in status["message"]


@source("pkg/registry/core/service/portallocator/allocator.go")
async def test_a_node_port_is_given(api):
    """In the range of the cluster (30000-32767 unless configured)."""
    spec = (await api.create(SERVICES, service(type="NodePort")))["spec"]
    assert spec["ports"][0]["nodePort"] > 0
    assert spec["externalTrafficPolicy"] == "Cluster"
