"""Whose identity an agent uses for its node's pods, and what happens as the kubelet renews its certificate."""

import asyncio
import json
import ssl
import time
from random import Random

import pytest
import yaml
from support.kube.raw_http import Server
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import FRESH_SECONDS
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.node_access import KUBELET_CONF, find_node_access
from lastcall.adapters.kube.own_pods import OwnPods
from lastcall.adapters.kube.resources import PODS
from lastcall.aio import cancel_and_wait
from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.authentication import certificates

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def config(server="https://flag.example:6443", cluster=None, user=None):
    return yaml.safe_dump(
        {
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        }
    )


class Host:
    """The files of a host below ``root``."""

    def __init__(self, root):
        self.root = root

    def write(self, name, text):
        path = self.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def kubelet(self, *arguments):
        self.write("proc/17/comm", "bash\n")
        self.write("proc/99/comm", "kubelet\n")
        self.write("proc/99/cmdline", "\0".join(["/usr/bin/kubelet", *arguments, ""]))

    def finds(self, environ=(), **rest):
        return find_node_access(Hand(), dict(environ), root=self.root, **rest).endpoint.host


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--kubeconfig=/var/lib/kubelet/kubeconfig", "--v=2"),
        ("--kubeconfig", "/var/lib/kubelet/kubeconfig"),
        ("--kubeconfig=/old", "--kubeconfig=/var/lib/kubelet/kubeconfig"),
    ],
)
def test_the_kubelets_flag_names_its_kubeconfig(host, arguments):
    host.kubelet(*arguments)
    host.write("/var/lib/kubelet/kubeconfig", config())
    host.write(KUBELET_CONF, config("https://kubeadm.example:6443"))
    assert host.finds() == "flag.example"
    given = host.write("given", config("https://given.example:6443"))
    assert host.finds(kubeconfig=str(given)) == "flag.example"


def test_without_the_kubelets_identity_the_given_one_counts(host):
    given = host.write("given", config("https://given.example:6443"))
    assert host.finds(IN_POD, kubeconfig=str(given)) == "given.example"


def test_without_a_kubelet_its_usual_file_counts(host):
    host.write(KUBELET_CONF, config("https://kubeadm.example:6443"))
    assert host.finds(IN_POD) == "kubeadm.example"
    host.kubelet("--bootstrap-kubeconfig=/b", "--kubeconfig=/not/yet/written")
    assert host.finds() == "kubeadm.example"


def test_an_agent_in_a_pod_without_it_uses_its_own_token(host, tmp_path, monkeypatch):
    for name in ("ca.crt", "token", "namespace"):
        host.write(f"account/{name}", name)
    monkeypatch.setitem(
        find_node_access.__globals__["in_cluster_access"].__kwdefaults__, "directory", tmp_path / "account"
    )
    assert host.finds(IN_POD) == "10.0.0.1"


def test_without_any_identity_the_error_names_where_it_looked(host):
    host.kubelet("--kubeconfig=/var/lib/kubelet/kubeconfig")
    with pytest.raises(InvalidInput) as raised:
        host.finds()
    said = str(raised.value)
    assert str(host.root / "var/lib/kubelet/kubeconfig") in said
    assert str(host.root / KUBELET_CONF.lstrip("/")) in said
    assert "--kubeconfig" in said


PLUGIN = {"exec": {"command": "aws-that-is-not-here", "apiVersion": "client.authentication.k8s.io/v1"}}


def test_a_credential_plugin_that_is_not_here_leaves_the_other_identity(host, caplog):
    """As in a container: the program is on the host."""
    host.write(KUBELET_CONF, config("https://kubelet.example:6443", user=PLUGIN))
    given = host.write("given", config("https://given.example:6443"))
    assert host.finds(kubeconfig=str(given)) == "given.example"
    assert "its credential plugin aws-that-is-not-here is not here" in caplog.text
    assert host.finds() == "kubelet.example", "there is no other: the error of its first request says why"
    there = {"exec": {**PLUGIN["exec"], "command": "sh"}}
    host.write(KUBELET_CONF, config("https://kubelet.example:6443", user=there))
    assert host.finds(kubeconfig=str(given)) == "kubelet.example"


def test_a_broken_file_is_an_error_and_not_passed_over(host):
    host.write(KUBELET_CONF, "clusters: 7")
    with pytest.raises(InvalidInput, match=r"kubelet\.conf"):
        host.finds(IN_POD)


# -- rotation ----------------------------------------------------------------------------------------------------------


class Hurried(Hand):
    """Its pauses are short, so that others have their turn meanwhile."""

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0.001)


class Renewing:
    """A kubelet's certificate at a server that lists no pods, and ends its watches when it is told to."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = certificates.new_authority("test", now=time.time())
        self.shown, self.refused, self.over = [], set(), False
        self.end_of_watch, self.watching = asyncio.Event(), asyncio.Event()
        self.current = directory / "kubelet-client-current.pem"
        self.renew("one")

    def renew(self, name):
        """As the kubelet does: a new file with certificate and key, a link to it, and the old file is gone."""
        pair = certificates.client_certificate(name, ["system:nodes"], self.authority, now=time.time())
        before = self.current.resolve() if self.current.exists() else None
        made = self.directory / f"kubelet-client-{name}.pem"
        made.write_bytes(pair.certificate + pair.key)
        link = self.directory / "updated"
        link.symlink_to(made.name)
        link.rename(self.current)
        if before:
            before.unlink()

    def tls(self):
        pair = certificates.server_certificate("s", ["127.0.0.1"], self.authority, now=time.time())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for name, content in (("crt", pair.certificate), ("key", pair.key)):
            (self.directory / name).write_bytes(content)
        context.load_cert_chain(self.directory / "crt", self.directory / "key")
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.authority.certificate.decode())
        return context

    async def serve(self, server, reader, writer):
        peer = writer.get_extra_info("peercert")
        name = dict(pair[0] for pair in peer["subject"])["commonName"]
        while True:
            head = await server.request(reader)
            self.shown.append((name, "watch" if "watch=" in head else "list"))
            if name in self.refused:
                writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}")
            elif "watch=" in head:
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                self.watching.set()
                await self.end_of_watch.wait()
                if self.over:
                    return
                self.end_of_watch.clear()
                writer.write(b"0\r\n\r\n")
            else:
                body = json.dumps({"metadata": {"resourceVersion": "5"}, "items": []}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()

    async def end_watch(self):
        """And the next one is open."""
        self.watching.clear()
        self.end_of_watch.set()
        async with asyncio.timeout(60):
            await self.watching.wait()


@pytest.fixture
async def renewing(tmp_path):
    """With a watch that is open."""
    made = await asyncio.to_thread(Renewing, tmp_path)
    server = Server(made.serve)
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=await asyncio.to_thread(made.tls))
    (tmp_path / "ca.crt").write_bytes(made.authority.certificate)
    port = listener.sockets[0].getsockname()[1]
    own = {"client-certificate": str(made.current), "client-key": str(made.current)}
    text = config(f"https://127.0.0.1:{port}", {"certificate-authority": str(tmp_path / "ca.crt")}, own)
    made.clock = Hurried()
    file = await asyncio.to_thread(Host(tmp_path).write, "kubelet.conf", text)
    access = await asyncio.to_thread(find_node_access, made.clock, {}, kubeconfig=str(file), root=tmp_path)
    http = HttpsTransport(access.endpoint, access.credentials)
    made.client = Client(http)
    own_pods = OwnPods(made.client, "n1", clock=made.clock, random=Random(1), on_change=lambda: None)
    watching = asyncio.create_task(own_pods.run())
    async with asyncio.timeout(60):
        await made.watching.wait()
    yield made
    await cancel_and_wait(watching)
    made.over = True
    made.end_of_watch.set()
    http.close()
    listener.close()
    await listener.wait_closed()
    await server.end()


async def test_a_renewed_certificate_is_used_from_the_next_watch_on(renewing):
    await asyncio.to_thread(renewing.renew, "two")
    renewing.clock.now += FRESH_SECONDS + 1
    await renewing.end_watch()
    assert renewing.shown == [("one", "list"), ("one", "watch"), ("two", "watch")]


async def test_a_refused_certificate_is_read_again_at_once(renewing):
    await asyncio.to_thread(renewing.renew, "two")
    renewing.refused.add("one")
    await renewing.end_watch()
    assert renewing.shown == [("one", "list"), ("one", "watch"), ("one", "watch"), ("two", "watch")]


async def test_half_a_file_is_not_kept_until_the_next_time_of_reading(renewing):
    """A file that is written in place, or certificate and key in two files, may be read between two writes."""
    whole = await asyncio.to_thread(renewing.current.read_text)
    await asyncio.to_thread(renewing.current.write_text, whole[: len(whole) // 2])
    renewing.clock.now += FRESH_SECONDS + 1
    with pytest.raises(InvalidInput, match="certificate"):
        await renewing.client.list(PODS)
    await asyncio.to_thread(renewing.current.write_text, whole)
    assert (await renewing.client.list(PODS)).items == []
