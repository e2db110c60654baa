"""The guard's webhook configurations together, where the guard lacks the right to one of them."""

import base64
import contextlib
from datetime import UTC, datetime

import pytest
from support.lab.virtual_server import Asked

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VALIDATING_WEBHOOKS
from lastcall.adapters.webhook import certificates
from lastcall.adapters.webhook.serving_certificate import PROPAGATION_SECONDS, RELOAD_SECONDS, ServingCertificate
from lastcall.adapters.webhook.serving_material import ServingMaterial
from lastcall.adapters.webhook.webhook_configuration import WebhookConfiguration, WebhookConfigurations
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import ApiNotPermitted
from lastcall.manifests import guard_webhooks, uninstall_webhook
from lastcall.names import GUARD_UNINSTALL
from lastcall_lab import virtual
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import UserInfo

HOLDS = guard_webhooks.CONFIGURATION
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
GUARD = UserInfo("guard", ("system:authenticated",))
ROLE = f"{RBAC}/clusterroles/guard"
TOKEN = "t" * 48


def made():
    """What is served with, by a new authority."""
    now = datetime.now(UTC)
    authority = certificates.make_authority(now)
    serving = certificates.make_serving_certificate(authority, ["guard"], now)
    return ServingMaterial(
        authorities=authority.certificate, certificate=serving.certificate, key=serving.key, path_token=TOKEN
    )


class Replica:
    """A guard with a Secret of its own, and what it has loaded."""

    def __init__(self, server):
        self.server, self.loaded, self.stored = server, [], made()
        client = Client(InProcessTransport(server, GUARD))
        holds = WebhookConfiguration(client, VALIDATING_WEBHOOKS, HOLDS, path=guard_webhooks.PATH)
        end = WebhookConfiguration(client, VALIDATING_WEBHOOKS, GUARD_UNINSTALL, path=uninstall_webhook.PATH)
        self.configurations = WebhookConfigurations(holds, [end])
        self.certificate = ServingCertificate(self, self.configurations, self, server.clock)

    async def read_or_make(self):
        return self.stored

    def load_cert_chain(self, *_):
        self.loaded.append(self.stored)

    async def trusted(self, name):
        """The authorities by which the API server knows the guard, and whether it knows the path."""
        webhooks = (await self.server.good("GET", f"{CONFIGURATIONS}/{name}"))["webhooks"]
        clients = [one["clientConfig"] for one in webhooks]
        [bundle] = {one.get("caBundle", "") for one in clients}
        return base64.b64decode(bundle).decode(), all(one["service"]["path"].endswith(TOKEN) for one in clients)


async def installed(server, *permitted):
    """Both configurations, and a replica that may write those of these names."""
    client = guard_webhooks.service_client("lastcall-system")
    await server.good("POST", CONFIGURATIONS, guard_webhooks.guard_webhook_configuration(client))
    await server.good("POST", CONFIGURATIONS, uninstall_webhook.uninstall_webhook_configuration(client))
    await server.good("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "guard"}, "rules": rules(*permitted)})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "guard"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guard"}
    binding = {"metadata": {"name": "guard"}, "roleRef": role, "subjects": [user]}
    await server.good("POST", f"{RBAC}/clusterrolebindings", binding)
    return Replica(server)


@contextlib.asynccontextmanager
async def running(replica):
    """Its loop meanwhile."""
    group = OrderedTaskGroup()
    group.start(replica.certificate.run(), "certificate")
    try:
        yield
    finally:
        await group.cancel()


def rules(*names):
    resource = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"]}
    return [{**resource, "verbs": ["get", "update"], "resourceNames": [*names]}]


def play(story):
    """With an API server that permits what roles do."""

    async def main():
        await story(Asked(virtual.VirtualClock(), authorization=AuthorizationMode.RBAC))

    virtual.run(main())


def warnings(caplog):
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


def test_without_the_right_to_another_one_a_renewed_authority_is_told_and_its_certificate_served(caplog):
    async def check(server):
        replica = await installed(server, HOLDS)
        await replica.certificate.load()
        async with running(replica):
            await server.clock.sleep(2 * RELOAD_SECONDS)
            replica.stored = made()
            await server.clock.sleep(10 * RELOAD_SECONDS + PROPAGATION_SECONDS)
        assert replica.loaded[-1] == replica.stored
        assert await replica.trusted(HOLDS) == (replica.stored.authorities, True)
        [said] = warnings(caplog)
        assert GUARD_UNINSTALL in said
        assert 'cannot get resource "validatingwebhookconfigurations"' in said

    play(check)


def test_a_right_that_comes_back_is_used_and_one_that_goes_again_is_told_again(caplog):
    async def check(server):
        replica = await installed(server, HOLDS)
        await replica.certificate.load()
        async with running(replica):
            await server.clock.sleep(2 * RELOAD_SECONDS)
            await server.good("PATCH", ROLE, {"rules": rules(HOLDS, GUARD_UNINSTALL)})
            await server.clock.sleep(2 * RELOAD_SECONDS)
            assert await replica.trusted(GUARD_UNINSTALL) == (replica.stored.authorities, True)
            await server.good("PATCH", ROLE, {"rules": rules(HOLDS)})
            await server.clock.sleep(10 * RELOAD_SECONDS)
        assert len(warnings(caplog)) == 2

    play(check)


def test_without_the_right_to_its_own_no_certificate_is_served_that_the_api_server_does_not_trust():
    async def check(server):
        replica = await installed(server, GUARD_UNINSTALL)
        await replica.certificate.load()
        first, replica.stored = replica.stored, made()
        with pytest.raises(ApiNotPermitted, match=HOLDS):
            await replica.configurations.ensure(authorities=replica.stored.authorities, token=TOKEN)
        async with running(replica):
            await server.clock.sleep(10 * RELOAD_SECONDS)
        assert replica.loaded == [first]

    play(check)
