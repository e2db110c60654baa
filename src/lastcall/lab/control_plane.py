"""The lab's control plane: API server, controllers, and the files by which kubectl finds them."""

import asyncio
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.aio import Group
from lastcall.lab.apiserver import ApiServer, certificates, kubeconfig
from lastcall.lab.apiserver.front import Front, Handler
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.apiserver.request import Identity
from lastcall.lab.apiserver.store import Store
from lastcall.lab.apiserver.streams import Streams
from lastcall.lab.controllers.cluster import ClusterClient
from lastcall.lab.controllers.every import every
from lastcall.lab.controllers.runner import Runner
from lastcall.ports import Clock

MANAGER = Identity("system:kube-controller-manager", ("system:masters", "system:authenticated"))
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
        self, place: Place, clock: Clock, random: Random, *, without: Collection[str] = (), store: Store | None = None
    ) -> None:
        self._place = place
        self._clock = clock
        self._random = random
        self._without = without
        self.server = ApiServer(clock, random, store=store)
        self._front: Front | None = None
        self._authority = b""
        self._token = ""
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

    async def prepare(self) -> None:
        """Certificates and tokens; InvalidInput if ``without`` names no controller."""
        self._authority = await asyncio.to_thread(self._certify)
        self._token = await asyncio.to_thread(self._admin_token)
        self.server.identities.add(self._token, USER, ("system:masters", "system:authenticated"))
        controllers = every(self._authority.decode(), without=self._without)
        cluster = ClusterClient(self.client(MANAGER), self._clock, self._random)
        self.runner = Runner(cluster, self._clock, controllers)

    async def run(self) -> None:
        """Serves, and runs the controllers."""
        self._front = Front(
            self.pages,
            Streams(self.server).upgrade,
            certificate=self._place.directory / "server.pem",
            key=self._place.directory / "server.key",
        )
        group = Group()
        group.start(self.runner.run(), "controllers")
        try:
            await self._front.serve(self._place.host, self._place.port, ready=self._ready)
        finally:
            await group.cancel()

    def _ready(self) -> None:
        kubeconfig.write(
            self._place.kubeconfig,
            url=self.url,
            authority=self._authority,
            token=self._token,
            user=USER,
            context="lastcall-lab",
        )
        self.up.set()

    def stop(self) -> None:
        """Makes ``run`` return soon."""
        if self._front:
            self._front.stop()

    def _certify(self) -> bytes:
        """The authority's certificate; made once for a directory, the server's anew each time."""
        directory, now = self._place.directory, self._clock.wall()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        certificate, key = directory / "ca.pem", directory / "ca.key"
        if certificate.exists() and key.exists():
            authority = certificates.Pair(certificate.read_bytes(), key.read_bytes())
        else:
            authority = certificates.authority("lastcall-lab", now=now)
            _write(key, authority.key)
            _write(certificate, authority.certificate)
        names = ["localhost", self._place.host, "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        server = certificates.server("kube-apiserver", names, authority, now=now)
        _write(directory / "server.key", server.key)
        _write(directory / "server.pem", server.certificate)
        return authority.certificate

    def _admin_token(self) -> str:
        """The administrator's; made once for a directory."""
        path = self._place.directory / "admin.token"
        if not path.exists():
            _write(path, secrets.token_urlsafe(24).encode())
        return path.read_text(encoding="ascii")


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, for the owner's eyes alone."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.touch(mode=0o600)
    temporary.write_bytes(content)
    temporary.replace(path)
