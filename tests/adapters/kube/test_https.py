"""The HTTP client with certificates on both sides."""

import asyncio
import ssl
import time

import pytest
from support.kube.raw_http import OK, always, get, talking

from lastcall import errors
from lastcall.adapters.kube import https_transport
from lastcall.adapters.kube.credentials import Credential
from lastcall.adapters.kube.https_transport import TransportLimits
from lastcall_lab.apiserver.authentication import certificates


@pytest.fixture(scope="module")
def authority():
    return certificates.new_authority("test", now=time.time())


def serving(pair, directory, authority=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name, content in (("crt", pair.certificate), ("key", pair.key)):
        (directory / name).write_bytes(content)
    context.load_cert_chain(directory / "crt", directory / "key")
    if authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.certificate.decode())
    return context


async def test_the_server_is_checked(authority, tmp_path):
    server = certificates.server_certificate("s", ["127.0.0.1"], authority, now=time.time())
    other = certificates.new_authority("other", now=time.time()).certificate.decode()
    mine = authority.certificate.decode()
    async with talking(always(OK), tls=serving(server, tmp_path), authority=mine) as (client, _):
        assert (await get(client)).body == b"ok"
    async with talking(always(OK), tls=serving(server, tmp_path), authority=other) as (client, _):
        with pytest.raises(errors.Unavailable, match="certificate verify failed"):
            await get(client)
    async with talking(always(OK), tls=serving(server, tmp_path), authority=mine, server_name="who") as (client, _):
        with pytest.raises(errors.Unavailable, match="certificate"):
            await get(client)
    async with talking(always(OK), tls=serving(server, tmp_path), insecure=True) as (client, _):
        assert (await get(client)).body == b"ok"


async def test_what_is_urgent_waits_neither_for_others_nor_for_a_server_that_is_slow_to_them(authority, tmp_path):
    answered = asyncio.Event()

    async def serve(server, reader, writer):
        while True:
            if "/slow" in await server.request(reader):
                await answered.wait()
            writer.write(OK)
            await writer.drain()

    server = certificates.server_certificate("s", ["127.0.0.1"], authority, now=time.time())
    mine, tls = authority.certificate.decode(), serving(server, tmp_path)
    async with talking(serve, tls=tls, authority=mine, limits=TransportLimits(connections=3, urgent=2)) as (
        client,
        counted,
    ):
        bulk = [asyncio.create_task(client.request("GET", "/slow", {}, b"")) for _ in range(12)]
        while len(counted.requests) < 3:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            for _ in range(5):
                assert (await get(client.urgent)).body == b"ok"
            await asyncio.gather(*(get(client.urgent) for _ in range(6)))
        assert not any(task.done() for task in bulk)
        assert counted.connections == 3 + 2
        answered.set()
        assert [answer.body for answer in await asyncio.gather(*bulk)] == [b"ok"] * 12
        assert counted.connections == 3 + 2
        client.close()
        with pytest.raises(errors.Unavailable, match="closed"):
            await get(client.urgent)


async def test_a_client_certificate_is_shown_and_a_new_one_from_then_on(authority, tmp_path):
    server = certificates.server_certificate("s", ["127.0.0.1"], authority, now=time.time())
    shown = []

    async def serve(server, reader, writer):
        peer = writer.get_extra_info("peercert")
        while True:
            await server.request(reader)
            shown.append(dict(pair[0] for pair in peer["subject"])["commonName"])
            writer.write(OK)

    class Two:
        names = ["one", "one", "two"]
        pairs = {
            name: certificates.client_certificate(name, ["g"], authority, now=time.time()) for name in ("one", "two")
        }

        async def current_credential(self):
            pair = self.pairs[self.names.pop(0)]
            return Credential(certificate=pair.certificate.decode(), key=pair.key.decode())

        def mark_refused(self, credential):
            return False

    mine, tls = authority.certificate.decode(), serving(server, tmp_path, authority)
    async with talking(serve, tls=tls, authority=mine, credential=Two()) as (client, counted):
        for _ in range(3):
            await get(client)
        assert (shown, counted.connections) == (["one", "one", "two"], 2)


async def test_what_is_prepared_need_not_be_made_for_the_first_request(authority, tmp_path, monkeypatch):
    server = certificates.server_certificate("s", ["127.0.0.1"], authority, now=time.time())
    mine, tls = authority.certificate.decode(), serving(server, tmp_path)
    async with talking(always(OK), tls=tls, authority=mine) as (client, counted):
        await client.prepare()
        assert counted.connections == 0, "no connection that the server would have to keep"
        monkeypatch.setattr(https_transport.tls, "client_context", None)
        assert (await get(client)).body == b"ok"


async def test_a_credential_that_cannot_be_prepared_is_reported_by_the_first_request(authority, tmp_path):
    server = certificates.server_certificate("s", ["127.0.0.1"], authority, now=time.time())

    class Missing:
        async def current_credential(self):
            raise errors.Unavailable("no token yet")

    async with talking(always(OK), tls=serving(server, tmp_path), credential=Missing()) as (client, _):
        await client.prepare()
        with pytest.raises(errors.Unavailable, match="no token yet"):
            await get(client)


def test_what_is_no_certificate_is_told():
    from lastcall.adapters.kube.tls import client_context

    with pytest.raises(errors.InvalidInput, match="certificate authority"):
        client_context("hello")
    with pytest.raises(errors.InvalidInput, match="client certificate"):
        client_context(insecure=True, certificate="hello", key="you")
