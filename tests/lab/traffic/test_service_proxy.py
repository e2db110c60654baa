"""What a node knows of endpoints, and which of them gets a connection; in virtual time."""

from contextlib import asynccontextmanager

from support.lab.controller_cluster import on_cluster

from lastcall.adapters.kube.resources import ENDPOINT_SLICES
from lastcall.aio import OrderedTaskGroup
from lastcall_lab.controllers.cluster.endpoint_slices import EndpointSliceController
from lastcall_lab.traffic.endpoint_table import SERVICE_NAME, EndpointTable
from lastcall_lab.traffic.service_proxy import ServicePort, ServiceProxy


def slice_of(name, *addresses, service="shop"):
    return {
        "metadata": {"name": name, "labels": {SERVICE_NAME: service}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 80}],
        "endpoints": [{"addresses": [address]} for address in addresses],
    }


@asynccontextmanager
async def table_of(cluster, *, delay):
    table, group = EndpointTable(cluster.client, cluster.clock, cluster.random, delay=delay), OrderedTaskGroup()
    group.start(table.run(), "table")
    try:
        yield table
    finally:
        await group.cancel()


def addresses(table, service="shop", port="http"):
    return [endpoint.address for endpoint in table.ready_endpoints("default", service, port)]


@on_cluster(EndpointSliceController())
async def test_a_node_knows_later_than_the_api_server(cluster):
    async with table_of(cluster, delay=3.0) as table:
        await cluster.create(ENDPOINT_SLICES, slice_of("one", "10.0.0.1"))
        await cluster.settle(2.9)
        assert addresses(table) == []
        await cluster.settle(0.2)
        assert addresses(table) == ["10.0.0.1"]
        await cluster.patch(ENDPOINT_SLICES, "one", {"endpoints": [{"addresses": ["10.0.0.2"]}]})
        await cluster.settle(1)
        await cluster.delete(ENDPOINT_SLICES, "one")
        await cluster.settle(1.9)
        assert addresses(table) == ["10.0.0.1"], "the past"
        await cluster.settle(0.2)
        assert addresses(table) == ["10.0.0.2"]
        await cluster.settle(1)
        assert addresses(table) == []


@on_cluster(EndpointSliceController())
async def test_the_slices_of_a_service_count_together_and_others_do_not(cluster):
    async with table_of(cluster, delay=0.0) as table:
        for one in (slice_of("a", "10.0.0.2"), slice_of("b", "10.0.0.1"), slice_of("c", "10.0.0.3", service="x")):
            await cluster.create(ENDPOINT_SLICES, one)
        await cluster.settle()
        assert addresses(table) == ["10.0.0.1", "10.0.0.2"]
        assert addresses(table, port="other") == []
        assert addresses(table, service="x") == ["10.0.0.3"]


@on_cluster(EndpointSliceController())
async def test_connections_go_to_the_endpoints_in_turn(cluster):
    async with table_of(cluster, delay=0.0) as table:
        proxy, target = ServiceProxy(table, node=0, privileged=False), ServicePort("default", "shop", "http")
        assert proxy.next_endpoint(target) is None
        await cluster.create(ENDPOINT_SLICES, slice_of("a", "10.0.0.1", "10.0.0.2", "10.0.0.3"))
        await cluster.settle()
        chosen = [proxy.next_endpoint(target).address for _ in range(6)]
        assert sorted(chosen[:3]) == sorted(chosen[3:]) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
        await cluster.patch(ENDPOINT_SLICES, "a", {"endpoints": [{"addresses": ["10.0.0.2"]}]})
        await cluster.settle()
        assert proxy.next_endpoint(target).address == "10.0.0.2"
