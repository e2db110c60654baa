"""What a provider may reach, tested as attacks: nothing but pods of the policy's namespace at addresses of their own."""

import asyncio
import base64
import contextlib
from ipaddress import ip_network
from random import Random

import pytest
from support.conformance.api_client import unique

from lastcall.adapters.guard.address_rules import forbidden_kind, parse_address
from lastcall.adapters.guard.control_addresses import ControlAddresses
from lastcall.adapters.guard.namespace_access import AddressPolicy, KubeNamespaceAccess
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, NAMESPACES, NODES, PODS, SECRETS, dict_resource
from lastcall.errors import LastcallError, NotFound, RefusedForSafety, Unavailable
from lastcall.model.pods import Pod
from lastcall.model.selectors import Expression, LabelSelector, SelectorOperator
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport

ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


@pytest.fixture(autouse=True)
def _loopback_alone(monkeypatch):
    """A rule that is broken sends nothing to the addresses of this test."""
    connect = asyncio.open_connection

    async def open_connection(host, *rest, **more):
        assert host.startswith("127.63."), f"{host} is dialled"
        return await connect(host, *rest, **more)

    monkeypatch.setattr(asyncio, "open_connection", open_connection)


class Cluster:
    """An API server with pods whose addresses a test chooses, and the access of one namespace."""

    def __init__(self, *allowed):
        server = ApiServer(SystemClock(), Random(1))
        self.client = Client(InProcessTransport(server))
        self.namespace = "shop"
        self.commands = []
        control = ControlAddresses(self.client, SystemClock(), hosts=["10.96.0.1"])
        addresses = AddressPolicy(control=control.read, allowed=[ip_network(one) for one in allowed])

        async def execute(pod, container, command):
            self.commands.append((pod.key, container, command))

        self.access = KubeNamespaceAccess(self.client, self.namespace, addresses=addresses, execute=execute)

    async def create_pod(self, address, *, namespace="shop", name=None, phase="Running", labels=None, **spec):
        for kind, obj in (
            (NAMESPACES, {"metadata": {"name": namespace}}),
            (ACCOUNTS, {"metadata": {"name": "default"}}),
        ):
            with contextlib.suppress(LastcallError):
                await self.client.create(kind, obj, namespace="" if kind is NAMESPACES else namespace)
        spec = {"containers": [{"name": "c", "image": "i"}], **spec}
        body = {"metadata": {"name": name or unique(), "labels": labels or {}}, "spec": spec}
        made = await self.client.create(PODS, body, namespace=namespace)
        return await self.set_address(made["metadata"]["name"], address, namespace=namespace, phase=phase)

    async def set_address(self, name, address, *, namespace="shop", phase="Running"):
        status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}] if address else []}
        return await self.client.patch(
            PODS.with_shape(Pod), name, {"status": status}, namespace=namespace, subresource="status"
        )

    async def create_node(self, address):
        await self.client.create(NODES, {"metadata": {"name": "n1"}})
        addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": "n1"}]
        await self.client.patch(NODES, "n1", {"status": {"addresses": addresses}}, subresource="status")


@contextlib.asynccontextmanager
async def listening(address="127.63.9.1"):
    """Yields the port, and whom it was connected to by."""
    seen = []

    async def serve(reader, writer):
        seen.append(writer.get_extra_info("sockname")[0])
        writer.write(b"hello")
        await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(serve, address, 0)
    try:
        yield server.sockets[0].getsockname()[1], seen
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)


async def test_a_pod_of_the_namespace_is_reached_where_an_administrator_allows_it():
    cluster = Cluster("127.63.9.0/24")
    async with listening() as (port, _):
        stream = await cluster.access.connect(await cluster.create_pod("127.63.9.1"), port)
        assert await stream.read(100) == b"hello"
        await stream.write(b"bye")
        stream.close()
    with pytest.raises(Unavailable, match="Connection refused"):
        await cluster.access.connect(await cluster.create_pod("127.63.9.2"), port)


async def test_no_proxy_of_the_environment_is_asked(monkeypatch):
    """It would connect to what the rules forbid."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.63.9.250:1")
    cluster = Cluster("127.63.9.0/24")
    async with listening() as (port, _):
        stream = await cluster.access.connect(await cluster.create_pod("127.63.9.1"), port)
        assert await stream.read(100) == b"hello"
        stream.close()


ADDRESSES = {
    "127.0.0.1": "a loopback address",
    "127.63.9.1": "a loopback address",
    "::1": "a loopback address",
    "::ffff:127.0.0.1": "a loopback address",
    "169.254.169.254": "a cloud's metadata service",
    "::ffff:169.254.169.254": "a cloud's metadata service",
    "64:ff9b::a9fe:a9fe": "a cloud's metadata service",
    "2002:a9fe:a9fe::1": "a cloud's metadata service",
    "fd00:ec2::254": "a cloud's metadata service",
    "168.63.129.16": "a cloud's metadata service",
    "100.100.100.200": "a cloud's metadata service",
    "169.254.170.23": "a link-local address",
    "fe80::1": "a link-local address",
    "0.0.0.0": "no address of a machine",
    "0.1.2.3": "no address of a machine",
    "::": "no address of a machine",
    "255.255.255.255": "no address of a machine",
    "224.0.0.1": "a multicast address",
    "ff02::1": "a multicast address",
    "10.0.0.7": "an address of a node or of the API server",
    "::ffff:10.0.0.7": "an address of a node or of the API server",
    "10.96.0.1": "an address of a node or of the API server",
    "192.0.2.9": "an address of a node or of the API server",
}


@pytest.mark.parametrize(("address", "kind"), ADDRESSES.items(), ids=ADDRESSES)
async def test_an_address_that_is_refused(address, kind):
    cluster = Cluster("10.9.0.0/16")
    await cluster.create_node("10.0.0.7")
    slices = {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.9"]}],
    }
    with contextlib.suppress(LastcallError):
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "default"}})
    await cluster.client.create(ENDPOINT_SLICES, slices, namespace="default")
    pod = await cluster.create_pod("10.9.9.9")
    forged = await _with_address(cluster, pod, address)
    with pytest.raises(RefusedForSafety, match=kind):
        await cluster.access.connect(forged, 80)


async def _with_address(cluster, pod, address):
    """The API server accepts no address in a form that is not canonical; a kubelet may report any other."""
    real = cluster.client.get

    async def get(resource, name, **rest):
        found = await real(resource, name, **rest)
        if resource.plural == "pods":
            from msgspec.structs import replace

            return replace(found, status=replace(found.status, pod_ip=address))
        return found

    cluster.client.get = get
    return pod


def test_ordinary_addresses_are_permitted():
    for text in (
        "10.1.2.3",
        "172.16.0.9",
        "192.168.7.7",
        "100.64.0.1",
        "240.0.0.1",
        "203.0.113.5",
        "fd12::7",
        "2001:db8::1",
    ):
        assert forbidden_kind(parse_address(text), frozenset()) == ""


@pytest.mark.parametrize(
    "text", ["", "localhost", "10.1.2", "127.1", "0x7f000001", "2130706433", "metadata.google.internal"]
)
async def test_a_name_is_no_address(text):
    assert parse_address(text) is None


async def test_a_pod_of_another_namespace_is_refused():
    cluster = Cluster("127.63.9.0/24")
    async with listening() as (port, seen):
        foreign = await cluster.create_pod("127.63.9.1", namespace="other", name="db-0")
        for ask in (cluster.access.connect(foreign, port), cluster.access.execute(foreign, "", ("true",))):
            with pytest.raises(RefusedForSafety, match="not of the GuardPolicy's namespace shop"):
                await ask
        assert (seen, cluster.commands) == ([], [])


async def test_pods_are_listed_of_the_namespace_alone_and_as_the_selector_says():
    cluster = Cluster()
    for name, labels in (("pd-1", {"app": "pd"}), ("pd-0", {"app": "pd", "tier": "a"}), ("kv-0", {"app": "kv"})):
        await cluster.create_pod("10.9.0.1", name=name, labels=labels)
    await cluster.create_pod("10.9.0.1", name="pd-2", labels={"app": "pd"}, namespace="other")
    await cluster.create_pod("", name="pd-3", labels={"app": "pd"})
    await cluster.create_pod("10.9.0.1", name="pd-4", labels={"app": "pd"}, phase="Failed")
    everywhere = LabelSelector(match_labels={"app": "pd"})
    assert [one.metadata.name for one in await cluster.access.list_pods(everywhere)] == ["pd-0", "pd-1"]
    expression = Expression(key="tier", operator=SelectorOperator.DOES_NOT_EXIST)
    narrower = LabelSelector(match_labels={"app": "pd"}, match_expressions=(expression,))
    assert [one.metadata.name for one in await cluster.access.list_pods(narrower)] == ["pd-1"]


async def test_an_address_that_the_pod_does_not_have_any_more_is_not_dialled():
    cluster = Cluster("127.63.9.0/24")
    async with listening("127.63.9.1") as (port, seen), listening("127.63.9.2") as (_, others):
        pod = await cluster.create_pod("127.63.9.1", name="db-0")
        await cluster.set_address("db-0", "127.63.9.2")
        with pytest.raises(Unavailable):
            await cluster.access.connect(pod, port)  # at the new address, where this port is closed
        await cluster.set_address("db-0", "")
        with pytest.raises(Unavailable, match="has no address"):
            await cluster.access.connect(pod, port)
        assert (seen, others) == ([], [])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_the_address_of_a_pod_that_has_ended_belongs_to_another(phase):
    cluster = Cluster("127.63.9.0/24")
    async with listening() as (port, seen):
        pod = await cluster.create_pod("127.63.9.1", phase=phase)
        with pytest.raises(Unavailable, match="is gone"):
            await cluster.access.connect(pod, port)
        assert seen == []


async def test_a_pod_that_was_replaced_or_is_gone():
    cluster = Cluster("127.63.9.0/24")
    async with listening() as (port, seen):
        pod = await cluster.create_pod("127.63.9.1", name="db-0")
        await cluster.client.delete(PODS, "db-0", namespace="shop", grace=0)
        with pytest.raises(Unavailable, match="is gone"):
            await cluster.access.connect(pod, port)
        await cluster.create_pod("127.63.9.1", name="db-0")
        with pytest.raises(Unavailable, match="is gone"):
            await cluster.access.connect(pod, port)
        assert seen == []


async def test_a_pod_of_the_host_network_is_refused_unless_its_address_is_allowed():
    cluster = Cluster()
    pod = await cluster.create_pod("198.51.100.7", hostNetwork=True)
    with pytest.raises(RefusedForSafety, match="hostNetwork"):
        await cluster.access.connect(pod, 80)
    cluster = Cluster("127.63.9.1/32")
    async with listening() as (port, _):
        (await cluster.access.connect(await cluster.create_pod("127.63.9.1", hostNetwork=True), port)).close()


async def test_addresses_that_cannot_be_read_permit_nothing():
    cluster = Cluster()
    pod = await cluster.create_pod("198.51.100.7")

    async def fail(*_, **__):
        raise Unavailable("the API server does not answer")

    cluster.client.list = fail
    with pytest.raises(Unavailable, match="does not answer"):
        await cluster.access.connect(pod, 80)


async def test_a_secret():
    cluster = Cluster()
    await cluster.create_pod("10.1.2.3")
    data = {"ok": b"s3cret\n", "binary": b"\xff\xfe"}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    await cluster.client.create(SECRETS, {"metadata": {"name": "auth"}, "data": encoded}, namespace="shop")
    assert await cluster.access.read_secret("auth", "ok") == "s3cret"
    for name, key, words in (
        ("auth", "no", 'has no key "no"'),
        ("auth", "binary", "is no text"),
        ("none", "ok", "there is no Secret shop/none"),
        ("../../other/secrets/auth", "ok", "there is no Secret"),
    ):
        with pytest.raises(LastcallError, match=words) as caught:
            await cluster.access.read_secret(name, key)
        assert not isinstance(caught.value, NotFound)


async def test_a_command():
    cluster = Cluster()
    pod = await cluster.create_pod("10.1.2.3", name="db-0")
    await cluster.access.execute(pod, "db", ("true",))
    assert cluster.commands == [("shop/db-0", "db", ("true",))]
