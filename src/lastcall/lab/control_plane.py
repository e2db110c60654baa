"""The lab's control plane: API server, controllers, and the files by which kubectl finds them."""

import asyncio
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.aio import first
from lastcall.errors import InvalidInput
from lastcall.lab import identities, private_files, secret_files
from lastcall.lab.apiserver import ApiServer, certificates, kubeconfig
from lastcall.lab.apiserver.aside import Thread
from lastcall.lab.apiserver.audit import Audit
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.apiserver.front import Front, Handler
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.apiserver.request import Identity
from lastcall.lab.apiserver.store import Store
from lastcall.lab.apiserver.streams import Streams
from lastcall.lab.controllers.cluster import ClusterClient
from lastcall.lab.controllers.every import every
from lastcall.lab.controllers.runner import Runner
from lastcall.lab.volumes.storage import Storage
from lastcall.ports import Clock

USER = "lab-admin"


@dataclass(frozen=True)
class Place:
    """Where the control plane listens and keeps its files. Port 0 means any that is free."""

    directory: Path
    kubeconfig: Path
    host: str = "127.0.0.1"
    port: int = 0


class ControlPlane:
    """Runs from ``run`` until it is cancelled or ``stop`` is called. ``without`` names controllers that do not run.

    Made in two steps, since its files are read and made in between: ``prepare``, then ``run``.
    """

    def __init__(
        self,
        place: Place,
        clock: Clock,
        random: Random,
        *,
        without: Collection[str] = (),
        storage: Storage | None = None,
        store: Store | None = None,
        audit: Audit | None = None,
        authorization: Authorization = Authorization.RBAC,
    ) -> None:
        self._place = place
        self._clock = clock
        self._random = random
        self._without = without
        self._storage = storage
        roles = identities.cluster_roles() if authorization is Authorization.RBAC else ()
        self.server = ApiServer(
            clock, random, store=store, audit=audit, authorization=authorization, roles=roles, aside=Thread()
        )
        self._front: Front | None = None
        self.authority = b""
        """The certificate of who has signed the server's, in PEM."""
        self._token = ""
        self.bmc_password = ""
        """Of the machines' BMCs, for who fences them."""
        self.pages: Handler = self.server
        """What answers; the lab puts its own pages before the API."""
        self.up = asyncio.Event()
        """Set when kubectl can be used."""

    @property
    def url(self) -> str:
        """Where the API is served."""
        return self._front.url if self._front else ""

    def client(self, user: Identity) -> Client:
        """Somebody's client, within this process."""
        return Client(InProcess(self.server, user), manager=user.name.rpartition(":")[2])

    def _controllers(self, user: Identity) -> Client:
        return Client(InProcess(self.server, user), manager="kube-controller-manager")

    def token(self, user: Identity) -> str:
        """A new one by which the API knows somebody for as long as this control plane lives."""
        token = secrets.token_urlsafe(24)
        self.server.identities.add(token, user.name, user.groups)
        return token

    async def prepare(self) -> None:
        """Certificates, tokens and controllers; InvalidInput if ``without`` names no controller."""
        await asyncio.to_thread(self._read_files)
        self.server.identities.add(self._token, USER, ("system:masters", "system:authenticated"))
        controllers = every(self.authority.decode(), storage=self._storage, without=self._without, roles=True)
        following, writing = self._controllers(identities.MANAGER), identities.writers(self._controllers)
        cluster = ClusterClient(following, self._clock, self._random, writing=writing)
        self.runner = Runner(cluster, self._clock, controllers)

    async def run(self) -> None:
        """Serves, and runs the controllers. InvalidInput or RefusedForSafety if port or kubeconfig cannot be used."""
        directory = self._place.directory
        self._front = Front(
            self.pages,
            Streams(self.server).upgrade,
            certificate=directory / "server.pem",
            key=directory / "server.key",
        )
        await asyncio.to_thread(self._announce, self._front)
        self.up.set()
        try:
            await first(self._front.serve(), self.runner.run())
        finally:
            self.server.close()
            await asyncio.to_thread(kubeconfig.remove, self._place.kubeconfig, url=self.url)

    def _announce(self, front: Front) -> None:
        """Listens, and writes down where: at the port of the last time, if nobody asks for another or has taken it."""
        kept = self._place.directory / "port"
        last = secret_files.port(kept)
        try:
            port = front.listen(self._place.host, self._place.port or last)
        except InvalidInput:
            if self._place.port or not last:
                raise
            port = front.listen(self._place.host, 0)
        private_files.write(kept, str(port).encode())
        kubeconfig.write(self._place.kubeconfig, url=front.url, authority=self.authority, token=self._token, user=USER)

    def stop(self) -> None:
        """Makes ``run`` return soon, once it serves."""
        if self._front:
            self._front.stop()

    def _read_files(self) -> None:
        directory = self._place.directory
        private_files.make_directory(directory)
        self.authority = self._certify()
        self._token = secret_files.text(directory / "admin.token")
        self.bmc_password = secret_files.text(directory / "bmc.password")
        self.server.identities.service_tokens.secret = secret_files.key(directory / "service-account.key")

    def _certify(self) -> bytes:
        """The authority's certificate; made once for a directory, the server's anew each time."""
        directory, now = self._place.directory, self._clock.wall()
        authority = secret_files.authority(directory / "ca.pem", directory / "ca.key", now=now)
        names = ["localhost", self._place.host, "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        server = certificates.server("kube-apiserver", names, authority, now=now)
        private_files.write(directory / "server.key", server.key)
        private_files.write(directory / "server.pem", server.certificate)
        return authority.certificate
