"""The control plane in virtual time: an API server that can be stopped, and controllers that can be killed."""

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.transport import Transport
from lastcall.ports.node import Clock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.storage.store import StorageKey, StoredChange
from lastcall_lab.apiserver.values.object_meta import micro_timestamp
from lastcall_lab.apiserver.values.request import ADMIN, UserInfo
from lastcall_lab.control_plane import identities
from lastcall_lab.control_plane.controller_set import make_controllers
from lastcall_lab.controllers.runner.api_client import ClusterApiClient
from lastcall_lab.controllers.runner.controller_runner import ControllerRunner
from lastcall_lab.controllers.runner.rate_limit import RateLimit
from lastcall_lab.simulation.heartbeats import LeaseHeartbeats, LeaseReadingTransport
from lastcall_lab.simulation.network_faults import FaultInjector, FaultyTransport
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.virtual import VirtualProcess
from lastcall_lab.volumes.storage import Storage

_OWN_LEASE = StorageKey("leases.coordination.k8s.io", "kube-system", "apiserver")


class SimulatedControlPlane:
    """``weather`` injects network faults into requests; the store outlives everything, as etcd does.

    ``authorization`` by RBAC costs time and decides nothing else: the programs ask for nothing that they may not.
    """

    def __init__(
        self,
        clock: Clock,
        seed: str,
        storage: Storage,
        weather: FaultInjector,
        pace: RateLimit,
        authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW,
    ) -> None:
        self._clock = clock
        self._seed = seed
        self._storage = storage
        self._pace = pace
        self._lives = 0
        self._by_role = authorization is AuthorizationMode.RBAC
        roles = identities.cluster_roles() if self._by_role else ()
        self.server = ApiServer(clock, random_of(seed, "api server"), authorization=authorization, roles=roles)
        self.heartbeats = LeaseHeartbeats(self.server.store, clock)
        self.weather = weather
        self._track_revisions()
        self.admin = Client(self._server_transport(ADMIN), manager="kubectl")
        """Straight into the server, whatever the weather: how the scenario itself acts and looks."""
        self.manager = VirtualProcess("controllers")

    def transport_for(self, user: UserInfo, program: str) -> Transport:
        """How a program reaches the server."""
        return FaultyTransport(self._server_transport(user), self.weather, program)

    def _server_transport(self, user: UserInfo) -> Transport:
        return LeaseReadingTransport(InProcessTransport(self.server, user), self.heartbeats)

    def start_controllers(self) -> None:
        """A new life of all of them, in one process as in a kube-controller-manager."""
        self._lives += 1
        self.manager = VirtualProcess("controllers")
        random = random_of(self._seed, f"controllers/{self._lives}")
        client = self._controller_client(identities.MANAGER)
        writing = identities.client_by_controller(self._controller_client) if self._by_role else None
        runner = ControllerRunner(
            ClusterApiClient(client, self._clock, random, pace=self._pace, writing=writing),
            self._clock,
            make_controllers("", storage=self._storage, renewals=self.heartbeats.last_renewal, roles=self._by_role),
        )
        self.manager.start(runner.run(), "controllers")

    def _controller_client(self, user: UserInfo) -> Client:
        return Client(self.transport_for(user, "controllers"), manager="kube-controller-manager")

    def stop(self) -> None:
        """Makes the API server unreachable."""
        self.weather.down = True
        self.server.registry.watcher.hang_up()

    def start(self) -> None:
        """Everything is there that was acknowledged, but no history: a watch cache begins anew with each life.

        The first that it writes is its own lease, as every API server does (KEP-1965). So the last revision that anybody
        knows is an old one, and all who watched list anew.
        """
        self._new_server()
        self.compact_history()
        self.weather.down = False

    def _new_server(self) -> None:
        store, renewed = self.server.store, {"renewTime": micro_timestamp(self._clock.wall())}
        before = store.get(_OWN_LEASE)
        metadata = {"name": _OWN_LEASE.name, "namespace": _OWN_LEASE.namespace, "uid": "apiserver"}
        lease = before.to_object() | {"spec": renewed} if before else {"metadata": metadata, "spec": renewed}
        store.put(_OWN_LEASE, lease, expected=before.revision if before else None)

    def _track_revisions(self) -> None:
        store, weather = self.server.store, self.weather
        before = store.on_change

        def hear(change: StoredChange) -> None:
            before(change)
            weather.note_revision(change.new.revision)

        store.on_change = hear

    def compact_history(self) -> None:
        """Compacts all history: a watch that falls behind gets 410 Gone."""
        self.weather.forget_revisions()
        self.server.store.compact(self.server.store.revision)
