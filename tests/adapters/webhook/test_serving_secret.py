"""The certificate of the guard's webhook: made once, renewed in time, used by real TLS; and the configuration."""

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from support.lab.virtual_server import Asked

from lastcall.adapters.kube import tls
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VALIDATING_WEBHOOKS
from lastcall.adapters.webhook import certificates, renewal_process
from lastcall.adapters.webhook.material_renewal import RenewalRequest, renew_material
from lastcall.adapters.webhook.renewal_process import renew_in_process
from lastcall.adapters.webhook.serving_material import ServingMaterial
from lastcall.adapters.webhook.serving_secret import ServingSecret
from lastcall.adapters.webhook.webhook_configuration import WebhookConfiguration
from lastcall.errors import Unavailable
from lastcall.manifests.guard_webhooks import (
    CONFIGURATION,
    PATH,
    guard_webhook_configuration,
    service_client,
    url_client,
)
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport

NAMES = ("lastcall-guard.lastcall-system.svc", "127.0.0.1")
DAY = 86400.0
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SECRETS = "/api/v1/namespaces/default/secrets"


class Cluster:
    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.server = Asked(self.clock)
        self.client = Client(InProcessTransport(self.server))
        self.renewals = 0

    def replica(self, seed=1, names=NAMES):
        return ServingSecret(
            self.client, "default", names, clock=self.clock, random=Random(seed), renew=self.renew_here
        )

    async def renew_here(self, found, path_token, names, now):
        self.renewals += 1
        return renew_material(RenewalRequest(found=found, path_token=path_token, names=tuple(names), now=now))


def in_cluster(test):
    def run():
        async def main():
            await test(Cluster())

        virtual.run(main())

    run.__name__ = test.__name__
    return run


async def shake_hands(material, *, name="127.0.0.1", trust=None):
    """A real TLS handshake by a client that trusts the authorities, or others."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_certificate(server, material.certificate, material.key)
    client = tls.client_context(trust or material.authorities)

    async def serve(reader, writer):
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
    port = listening.sockets[0].getsockname()[1]
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name)
        writer.close()
    finally:
        listening.close()


async def test_a_client_that_trusts_the_authority_trusts_the_certificate_for_its_names():
    now = datetime.now(UTC)
    authority = certificates.make_authority(now)
    serving = certificates.make_serving_certificate(authority, NAMES, now)
    material = ServingMaterial(authorities=authority.certificate, certificate=serving.certificate, key=serving.key)
    for name in NAMES:
        await shake_hands(material, name=name)
    with pytest.raises(ssl.SSLCertVerificationError):
        await shake_hands(material, name="other.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        await shake_hands(material, trust=certificates.make_authority(now).certificate)


@in_cluster
async def test_replicas_that_start_together_serve_with_the_same(cluster):
    found = await asyncio.gather(*(cluster.replica(seed).read_or_make() for seed in range(3)))
    assert len({(one.certificate, one.path_token) for one in found}) == 1
    assert len(found[0].path_token) == 48


@in_cluster
async def test_it_is_renewed_after_two_thirds_of_its_life_and_the_authority_stays(cluster):
    first = await cluster.replica().read_or_make()
    await cluster.clock.sleep(59 * DAY)
    assert await cluster.replica().read_or_make() == first
    await cluster.clock.sleep(2 * DAY)
    one, two = await asyncio.gather(cluster.replica(1).read_or_make(), cluster.replica(2).read_or_make())
    assert one == two
    assert one.certificate != first.certificate
    assert (one.authorities, one.path_token) == (first.authorities, first.path_token)


@in_cluster
async def test_what_is_not_due_is_looked_into_once(cluster):
    replica = cluster.replica()
    first = await replica.read_or_make()
    for _ in range(5):
        await cluster.clock.sleep(11 * DAY)
        assert await replica.read_or_make() == first
    assert cluster.renewals == 1
    await cluster.clock.sleep(6 * DAY)
    second = await replica.read_or_make()
    assert second != first
    assert (await replica.read_or_make(), cluster.renewals) == (second, 2)
    await cluster.replica(names=(*NAMES, "guard.example")).read_or_make()
    assert (await replica.read_or_make()).certificate not in (first.certificate, second.certificate), "another made it"


async def test_a_process_makes_and_renews_the_same():
    now = datetime.now(UTC)
    made = (await renew_in_process(None, "t" * 48, NAMES, now)).material
    assert made.path_token == "t" * 48
    for name in NAMES:
        await shake_hands(made, name=name)
    again = await renew_in_process(made, "", NAMES, now)
    assert again.material == made
    assert timedelta(days=59) < again.due_at - now < timedelta(days=61)
    later = await renew_in_process(made, "", NAMES, again.due_at)
    assert later.material.authorities == made.authorities
    assert later.material.certificate != made.certificate


async def test_a_process_that_cannot_read_the_certificate_is_named_without_the_key():
    broken = ServingMaterial(authorities="", certificate="broken", key="secret-1", authority_key="secret-2")
    with pytest.raises(Unavailable, match="material_renewal failed with 1") as raised:
        await renew_in_process(broken, "", NAMES, datetime.now(UTC))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("module", ["this", "json.tool"])
async def test_an_answer_that_is_no_renewal_is_named_without_the_key(monkeypatch, module):
    """A program of Python's that succeeds and says something else; the second one repeats what it was asked."""
    monkeypatch.setattr(renewal_process, "MODULE", module)
    found = ServingMaterial(authorities="", certificate="secret-0", key="secret-1", authority_key="secret-2")
    with pytest.raises(Unavailable, match=f"{module} has given an answer that cannot be read") as raised:
        await renew_in_process(found, "", NAMES, datetime.now(UTC))
    assert "secret" not in str(raised.value)


@in_cluster
async def test_an_old_authority_is_replaced_and_trusted_a_while_longer(cluster):
    first = await cluster.replica().read_or_make()
    await cluster.clock.sleep(2450 * DAY)
    second = await cluster.replica().read_or_make()
    assert second.authorities.endswith(first.authorities)
    assert second.authorities.count("BEGIN CERTIFICATE") == 2
    await cluster.clock.sleep(61 * DAY)
    third = await cluster.replica().read_or_make()
    assert third.authorities == second.authorities


@in_cluster
async def test_another_name_needs_another_certificate(cluster):
    first = await cluster.replica().read_or_make()
    second = await cluster.replica(names=(*NAMES, "guard.example")).read_or_make()
    assert first.certificate != second.certificate
    assert (await cluster.replica().read_or_make()) == second, "a replica of an older version does not turn it back"


@in_cluster
async def test_a_secret_that_others_keep_is_left_alone_but_for_the_token(cluster):
    made = await cluster.replica().read_or_make()
    await cluster.server.good("DELETE", f"{SECRETS}/lastcall-guard-tls")
    data = {"tls.crt": made.certificate, "tls.key": made.key, "keystore.p12": "theirs"}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    theirs = {"metadata": {"name": "lastcall-guard-tls"}, "type": "kubernetes.io/tls", "data": encoded}
    await cluster.server.good("POST", SECRETS, theirs)
    await cluster.clock.sleep(80 * DAY)
    found = await cluster.replica().read_or_make()
    assert (found.certificate, found.authorities) == (made.certificate, "")
    assert len(found.path_token) == 48
    assert await cluster.replica(2).read_or_make() == found
    stored = await cluster.server.good("GET", f"{SECRETS}/lastcall-guard-tls")
    assert stored["type"] == "kubernetes.io/tls"
    assert {key: stored["data"][key] for key in encoded} == encoded


@in_cluster
async def test_an_empty_secret_is_filled(cluster):
    """As the chart may create it, so that the guard needs no right to create Secrets."""
    await cluster.server.good("POST", SECRETS, {"metadata": {"name": "lastcall-guard-tls"}})
    made = await cluster.replica().read_or_make()
    assert await cluster.replica(2).read_or_make() == made


@pytest.mark.parametrize("client", [service_client("lastcall-system"), url_client("https://127.0.0.1:9443/review")])
def test_the_configuration_gets_path_and_authority(client):
    @in_cluster
    async def check(cluster):
        configuration = WebhookConfiguration(cluster.client, VALIDATING_WEBHOOKS, CONFIGURATION, path=PATH)
        assert not await configuration.ensure(authorities="pem", token="token")
        await cluster.server.good("POST", CONFIGURATIONS, guard_webhook_configuration(client))
        authorities = (await cluster.replica().read_or_make()).authorities
        assert await configuration.ensure(authorities=authorities, token="token")
        stored = await cluster.server.good("GET", f"{CONFIGURATIONS}/lastcall-guard")
        revision = stored["metadata"]["resourceVersion"]
        for webhook in stored["webhooks"]:
            said = webhook["clientConfig"]
            assert base64.b64decode(said["caBundle"]).decode() == authorities
            path = said["service"]["path"] if "service" in said else said["url"]
            assert path.endswith("/review/token")
        await configuration.ensure(authorities=authorities, token="token")
        again = await cluster.server.good("GET", f"{CONFIGURATIONS}/lastcall-guard")
        assert again["metadata"]["resourceVersion"] == revision, "nothing is written that is there"

    check()
