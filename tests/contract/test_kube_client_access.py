"""Who the client is, at the lab over TLS: tokens that end or are taken back, plugins, the pod's own; and who leads."""

import asyncio
import contextlib
import json
import stat
import sys
from random import Random

import pytest
import yaml
from support.kube.api_servers import TOKEN, lab
from support.lab import https_server
from support.virtual_time.manual_clock import Hand

from lastcall import errors
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint, TransportLimits
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.adapters.kube.resources import LEASES, NAMESPACES, dict_resource
from lastcall.model.leadership import ElectionTerms

V1, BETA = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
REVIEWS = dict_resource("authentication.k8s.io", "v1", "selfsubjectreviews")


class Lab:
    """A lab over TLS whose tokens come and go."""

    def __init__(self, server, url, authority):
        self.server, self.url, self.authority = server, url, authority

    def know(self, token, name="robot"):
        self.server.identities.add(token, name, ["system:masters", "system:authenticated"])

    def forget(self, token):
        del self.server.identities._table[token]

    @contextlib.asynccontextmanager
    async def client(self, access, **rest):
        http = HttpsTransport(access.endpoint, access.credentials, **rest)
        try:
            yield Client(http)
        finally:
            http.close()


@pytest.fixture
async def tls_lab(tmp_path):
    server = lab()
    async with https_server.serving(server, tmp_path) as (url, authority):
        yield Lab(server, url, authority)


async def name_of(client):
    """Who the server says we are."""
    said = await client.create(REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    return said["status"]["userInfo"]["username"]


# -- plugins -----------------------------------------------------------------------------------------------------------

PLUGIN = """#!{python}
import json, os
folder = {folder!r}
with open(folder + "/asked", "a") as file:
    file.write("x")
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(folder + "/says") as file:
    status = json.load(file)
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


class Plugin:
    """A program of a kubeconfig that prints what ``says`` was told, and how often it was asked."""

    def __init__(self, directory, lab, version, clock):
        self._directory = directory
        program = directory / "plugin"
        program.write_text(PLUGIN.format(python=sys.executable, folder=str(directory)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (directory / "authority.pem").write_text(lab.authority)
        execution = {"apiVersion": version, "command": "./plugin", "interactiveMode": "Never"}
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": lab.url, "certificate-authority": "authority.pem"}}],
            "users": [{"name": "u", "user": {"exec": execution}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        (directory / "config").write_text(yaml.safe_dump(content))
        self.access = kubeconfig.load_kubeconfig([directory / "config"], clock)

    def says(self, **status):
        (self._directory / "says").write_text(json.dumps(status))

    @property
    def asked(self):
        return len((self._directory / "asked").read_text())


@pytest.mark.parametrize("version", [V1, BETA])
async def test_a_plugins_token_is_had_anew_when_it_ends_and_when_it_is_refused(tls_lab, tmp_path, version):
    clock = Hand()
    plugin = Plugin(tmp_path, tls_lab, version, clock)
    for token in ("one", "two", "three"):
        tls_lab.know(token, token)
    async with tls_lab.client(plugin.access) as client:
        plugin.says(token="one", expirationTimestamp="1970-01-01T01:00:00Z")
        assert [await name_of(client), await name_of(client)] == ["one", "one"]
        assert plugin.asked == 1
        clock.now = 3599
        plugin.says(token="two")
        assert await name_of(client) == "two"
        tls_lab.forget("two")
        plugin.says(token="three")
        assert await asyncio.gather(*(name_of(client) for _ in range(8))) == ["three"] * 8
        assert plugin.asked == 3, "many are refused, and one asks"
        tls_lab.forget("three")
        with pytest.raises(errors.NotPermitted):
            await name_of(client)


# -- a pod's token -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def pod(tls_lab, tmp_path):
    """What a pod is told of the server, and who it is there."""
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "ca.crt").write_text(tls_lab.authority)
    (directory / "namespace").write_text("default\n")
    (directory / "token").write_text("first\n")
    tls_lab.know("first", "first")
    return directory


def in_cluster(lab, directory, clock):
    endpoint = ServerEndpoint.from_url(lab.url)
    environ = {"KUBERNETES_SERVICE_HOST": endpoint.host, "KUBERNETES_SERVICE_PORT": str(endpoint.port)}
    return kubeconfig.in_cluster_access(clock, environ, directory=directory)


async def test_a_pods_token_is_read_again_each_minute(tls_lab, pod):
    clock = Hand()
    tls_lab.know("second", "second")
    async with tls_lab.client(in_cluster(tls_lab, pod, clock)) as client:
        assert await name_of(client) == "first"
        (pod / "token").write_text("second\n")
        assert await name_of(client) == "first"
        clock.now += 61
        assert await name_of(client) == "second"


async def test_a_pods_token_that_is_refused_is_read_again_at_once(tls_lab, pod):
    async with tls_lab.client(in_cluster(tls_lab, pod, Hand())) as client:
        assert await name_of(client) == "first"
        tls_lab.forget("first")
        with pytest.raises(errors.NotPermitted) as caught:
            await name_of(client)
        assert caught.value.code == 401
        tls_lab.know("second", "second")
        (pod / "token").write_text("second\n")
        assert await asyncio.gather(*(name_of(client) for _ in range(8))) == ["second"] * 8


async def test_a_pod_of_another_server_is_not_believed(tls_lab, pod):
    from lastcall_lab.apiserver.authentication import certificates

    (pod / "ca.crt").write_bytes(certificates.new_authority("other", now=SystemClock().wall()).certificate)
    async with tls_lab.client(in_cluster(tls_lab, pod, Hand())) as client:
        with pytest.raises(errors.Unavailable, match="certificate verify failed"):
            await name_of(client)


# -- leadership over a connection --------------------------------------------------------------------------------------


class Slow:
    """A server that answers lists of namespaces only when it is told to."""

    def __init__(self, server):
        self._server = server
        self.answers = asyncio.Event()

    async def handle(self, request):
        if request.path.endswith("/namespaces"):
            await self.answers.wait()
        return await self._server.handle(request)


async def test_a_lease_is_renewed_while_all_other_connections_hang(tmp_path):
    """The leader leads on, and another does not take over; when it stops, the other does."""
    terms, clock, slow = ElectionTerms(lease=10, renew=9.0, retry=0.3), SystemClock(), Slow(lab())
    async with contextlib.AsyncExitStack() as stack:
        url, authority = await stack.enter_async_context(https_server.serving(slow, tmp_path))
        https = [
            HttpsTransport(
                ServerEndpoint.from_url(url, authority=authority),
                StaticCredentials(Credential(token=TOKEN)),
                limits=TransportLimits(connections=2),
            )
            for _ in range(2)
        ]
        for http in https:
            stack.callback(http.close)
        await Client(https[0]).create(LEASES, {"metadata": {"name": "l"}}, namespace="default")
        elections = [
            LeaderElector(
                Client(http.urgent), ObjectKey("default", "l"), name, clock=clock, random=Random(name), terms=terms
            )
            for name, http in zip("ab", https, strict=True)
        ]
        led = []

        async def work():
            led.append(clock.boottime())
            await asyncio.sleep(1000)

        first = asyncio.create_task(elections[0].lead(work))
        while not led:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(elections[1].lead(work))
        bulk = [asyncio.create_task(Client(https[0]).list(NAMESPACES)) for _ in range(20)]
        await asyncio.sleep(terms.lease + 1)
        assert elections[0].leads
        assert await elections[0].confirm_leading()
        assert len(led) == 1
        assert not any(task.done() for task in bulk)
        first.cancel()
        async with asyncio.timeout(60):
            while len(led) < 2:
                await asyncio.sleep(0.01)
        assert elections[1].holder == "b"
        slow.answers.set()
        await asyncio.gather(*bulk)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
