"""The lab's control plane: API server, controllers, and the files that kubectl needs."""

import asyncio
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.aio import wait_first
from lastcall.errors import InvalidInput
from lastcall.ports.node import Clock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.apiserver.authorization.audit import AuditLog
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.registry.body_worker import BodyWorkerThread
from lastcall_lab.apiserver.server import kubeconfig
from lastcall_lab.apiserver.server.http_server import HttpServer, RequestHandler
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.storage import private_files
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values.request import UserInfo
from lastcall_lab.control_plane import identities, secret_files
from lastcall_lab.control_plane.controller_set import make_controllers
from lastcall_lab.controllers.runner.api_client import ClusterApiClient
from lastcall_lab.controllers.runner.controller_runner import ControllerRunner
from lastcall_lab.volumes.storage import Storage

USER = "lab-admin"


@dataclass(frozen=True)
class ControlPlaneLocation:
    """The address and the directory of the control plane. Port 0 selects a free one."""

    directory: Path
    kubeconfig: Path
    host: str = "127.0.0.1"
    port: int = 0


class ControlPlane:
    """Runs from ``run`` until it is cancelled or ``stop`` is called.

    ``without`` names disabled controllers, ``optional`` the API versions that are served besides.

    Two steps, because callers read its files in between: ``prepare``, then ``run``.
    """

    def __init__(
        self,
        place: ControlPlaneLocation,
        clock: Clock,
        random: Random,
        *,
        without: Collection[str] = (),
        storage: Storage | None = None,
        store: Store | None = None,
        audit: AuditLog | None = None,
        authorization: AuthorizationMode = AuthorizationMode.RBAC,
        optional: Sequence[str] = (),
    ) -> None:
        self._place = place
        self._clock = clock
        self._random = random
        self._without = without
        self._storage = storage
        self._optional = optional
        roles = identities.cluster_roles() if authorization is AuthorizationMode.RBAC else ()
        self.server = ApiServer(
            clock,
            random,
            store=store,
            audit=audit,
            authorization=authorization,
            roles=roles,
            offload=BodyWorkerThread(),
            optional=optional,
        )
        self._front: HttpServer | None = None
        self.authority = b""
        """The certificate of the authority that signed the server's, in PEM."""
        self._token = ""
        self.bmc_password = ""
        """The password of the machines' BMCs, for fencing."""
        self.pages: RequestHandler = self.server
        """The handler of requests; the lab puts its own pages in front of the API."""
        self.up = asyncio.Event()
        """Set when kubectl can be used."""

    @property
    def url(self) -> str:
        """The URL of the API."""
        return self._front.url if self._front else ""

    def client(self, user: UserInfo) -> Client:
        """A client within this process that acts as this user."""
        return Client(InProcessTransport(self.server, user), manager=user.name.rpartition(":")[2])

    def _controller_client(self, user: UserInfo) -> Client:
        return Client(InProcessTransport(self.server, user), manager="kube-controller-manager")

    def issue_token(self, user: UserInfo) -> str:
        """A new token that identifies the user for as long as this control plane runs."""
        token = secrets.token_urlsafe(24)
        self.server.identities.add(token, user.name, user.groups)
        return token

    def join_node(self, node: str) -> dict[str, str]:
        """What a kubelet in another process needs: the URL, the authority's certificate in PEM, the node's token."""
        token = self.issue_token(identities.kubelet_identity(node))
        return {"url": self.url, "authority": self.authority.decode(), "token": token}

    async def prepare(self) -> None:
        """Makes certificates, tokens and controllers; InvalidInput if ``without`` names an unknown controller."""
        await asyncio.to_thread(self._read_files)
        self.server.identities.add(self._token, USER, ("system:masters", "system:authenticated"))
        controllers = make_controllers(
            self.authority.decode(),
            storage=self._storage,
            without=self._without,
            roles=True,
            optional=self._optional,
        )
        following, writing = (
            self._controller_client(identities.MANAGER),
            identities.client_by_controller(self._controller_client),
        )
        cluster = ClusterApiClient(following, self._clock, self._random, writing=writing)
        self.runner = ControllerRunner(cluster, self._clock, controllers)

    async def run(self) -> None:
        """Serves the API and runs the controllers. InvalidInput or RefusedForSafety: unusable port or kubeconfig."""
        directory = self._place.directory
        self._front = HttpServer(
            self.pages,
            self.server.streams.serve_upgrade,
            certificate=directory / "server.pem",
            key=directory / "server.key",
        )
        await asyncio.to_thread(self._listen_and_announce, self._front)
        self.up.set()
        try:
            await wait_first(self._front.serve(), self.runner.run())
        finally:
            self.server.close()
            await asyncio.to_thread(kubeconfig.remove_kubeconfig, self._place.kubeconfig, url=self.url)

    def _listen_and_announce(self, front: HttpServer) -> None:
        """Listens and records the port: the requested one, else that of the last start if it is free."""
        kept = self._place.directory / "port"
        last = secret_files.read_port(kept)
        try:
            port = front.listen(self._place.host, self._place.port or last)
        except InvalidInput:
            if self._place.port or not last:
                raise
            port = front.listen(self._place.host, 0)
        private_files.write_file(kept, str(port).encode())
        kubeconfig.write_kubeconfig(
            self._place.kubeconfig, url=front.url, authority=self.authority, token=self._token, user=USER
        )

    def stop(self) -> None:
        """Makes a serving ``run`` return soon."""
        if self._front:
            self._front.stop()

    def _read_files(self) -> None:
        directory = self._place.directory
        private_files.make_directory(directory)
        self.authority = self._make_certificates()
        self._token = secret_files.read_secret(directory / "admin.token")
        self.bmc_password = secret_files.read_secret(directory / "bmc.password")
        self.server.identities.service_tokens.secret = secret_files.read_signing_key(directory / "service-account.key")

    def _make_certificates(self) -> bytes:
        """The authority's certificate, made once for each directory; the server's is made at each start."""
        directory, now = self._place.directory, self._clock.wall()
        authority = secret_files.read_authority(directory / "ca.pem", directory / "ca.key", now=now)
        names = ["localhost", self._place.host, "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        server = certificates.server_certificate("kube-apiserver", names, authority, now=now)
        private_files.write_file(directory / "server.key", server.key)
        private_files.write_file(directory / "server.pem", server.certificate)
        return authority.certificate
