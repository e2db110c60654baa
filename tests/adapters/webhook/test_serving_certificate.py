"""A new authority is known to the API server before a certificate of it is served, whatever other replicas do."""

import asyncio
import ssl
from datetime import UTC, datetime

from lastcall.adapters.webhook import certificates
from lastcall.adapters.webhook.serving_certificate import PROPAGATION_SECONDS, RELOAD_SECONDS, ServingCertificate
from lastcall.adapters.webhook.serving_material import ServingMaterial
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall_lab import virtual


def made(*authorities):
    """What is served with, signed by the first authority."""
    serving = certificates.make_serving_certificate(authorities[0], ["guard"], datetime.now(UTC))
    trusted = "".join(one.certificate for one in authorities)
    return ServingMaterial(authorities=trusted, certificate=serving.certificate, key=serving.key, path_token="t" * 48)


OLD, NEW = (certificates.make_authority(datetime.now(UTC)) for _ in range(2))
FIRST, SECOND = made(OLD), made(NEW, OLD)


class Cluster:
    """The Secret, the webhook configuration, and what was loaded; ``log`` is in order."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.stored, self.log, self.fails = FIRST, [], 0

    async def read_or_make(self):
        if self.fails:
            self.fails -= 1
            raise Unavailable("no answer")
        return self.stored

    async def ensure(self, *, authorities, token):
        assert token == "t" * 48
        self.log.append((self.clock.boottime(), "told", authorities))
        return True

    def load_cert_chain(self, *_):
        self.log.append((self.clock.boottime(), "loaded", self.stored.certificate))

    def replica(self):
        return ServingCertificate(self, self, self, self.clock)


def play(story):
    async def main():
        await story(Cluster())

    virtual.run(main())


def test_a_new_authority_is_told_before_its_certificate_is_served():
    async def story(cluster):
        replica = cluster.replica()
        await replica.load()
        assert replica.path_token == "t" * 48
        running = asyncio.ensure_future(replica.run())
        await cluster.clock.sleep(1)
        cluster.stored = SECOND
        cluster.log.clear()
        await cluster.clock.sleep(RELOAD_SECONDS + PROPAGATION_SECONDS + 1)
        (told_at, *told), (loaded_at, *loaded), *_ = cluster.log
        assert (told, loaded) == (["told", SECOND.authorities], ["loaded", SECOND.certificate])
        assert loaded_at == told_at + PROPAGATION_SECONDS
        await cancel_and_wait(running)

    play(story)


def test_a_replica_that_has_served_with_an_older_authority_does_not_take_the_newer_one_away():
    async def story(cluster):
        replica = cluster.replica()
        await replica.load()
        running = asyncio.ensure_future(replica.run())
        await cluster.clock.sleep(1)
        cluster.log.clear()
        cluster.stored = SECOND  # another replica has renewed it, and told the API server
        await cluster.clock.sleep(10 * RELOAD_SECONDS)
        assert {what for _, kind, what in cluster.log if kind == "told"} == {SECOND.authorities}
        await cancel_and_wait(running)

    play(story)


def test_it_waits_for_the_api_server_at_its_start():
    async def story(cluster):
        cluster.fails = 3
        await cluster.replica().load()
        assert [kind for _, kind, _ in cluster.log] == ["loaded"]
        assert cluster.clock.boottime() > 0

    play(story)


def test_a_real_context_takes_the_certificate():
    async def story(cluster):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        await ServingCertificate(cluster, cluster, context, cluster.clock).load()
        assert cluster.log == []

    play(story)
