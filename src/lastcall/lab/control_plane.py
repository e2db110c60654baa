"""The lab's control plane: API server, controllers, and the files by which kubectl finds them."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.aio import Group
from lastcall.lab.apiserver import ApiServer, certificates, kubeconfig
from lastcall.lab.apiserver.front import Front
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.apiserver.request import Identity
from lastcall.lab.apiserver.streams import Streams
from lastcall.lab.controllers.cluster import ClusterClient
from lastcall.lab.controllers.controller import Controller
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
    """Runs from ``run`` until it is cancelled or ``stop`` is called."""

    def __init__(self, place: Place, clock: Clock, random: Random, controllers: Sequence[Controller]) -> None:
        self._place = place
        self._clock = clock
        self._random = random
        self.server = ApiServer(clock, random)
        self.runner = Runner(ClusterClient(self.client(MANAGER), clock, random), clock, controllers)
        self._front: Front | None = None
        self.up = asyncio.Event()
        """Set when kubectl can be used."""

    @property
    def url(self) -> str:
        """Where the API is served."""
        return self._front.url if self._front else ""

    def client(self, user: Identity) -> Client:
        """Somebody's client, within this process."""
        return Client(InProcess(self.server, user), manager=user.name.rpartition(":")[2])

    async def run(self) -> None:
        """Serves, and runs the controllers."""
        authority = await asyncio.to_thread(self._certify)
        token = await asyncio.to_thread(self._token)
        self.server.identities.add(token, USER, ("system:masters", "system:authenticated"))
        self._front = Front(
            self.server,
            Streams(self.server).upgrade,
            certificate=self._place.directory / "server.pem",
            key=self._place.directory / "server.key",
        )

        def ready() -> None:
            kubeconfig.write(
                self._place.kubeconfig,
                url=self.url,
                authority=authority,
                token=token,
                user=USER,
                context="lastcall-lab",
            )
            self.up.set()

        group = Group()
        group.start(self.runner.run(), "controllers")
        try:
            await self._front.serve(self._place.host, self._place.port, ready=ready)
        finally:
            await group.cancel()

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
        server = certificates.server("lastcall-lab", names, authority, now=now)
        _write(directory / "server.key", server.key)
        _write(directory / "server.pem", server.certificate)
        return authority.certificate

    def _token(self) -> str:
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
