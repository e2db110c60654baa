"""The control plane in virtual time: an API server that can be stopped, and controllers that can be killed."""

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.transport import Transport
from lastcall.lab import identities
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.authorization.authorizer import Authorization
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.apiserver.meta import micro_timestamp
from lastcall.lab.apiserver.request import ADMIN, Identity
from lastcall.lab.apiserver.store import Change, Key
from lastcall.lab.controllers.cluster import ClusterClient
from lastcall.lab.controllers.every import every
from lastcall.lab.controllers.pace import Pace
from lastcall.lab.controllers.runner import Runner
from lastcall.lab.simulation.heartbeats import Heartbeats, ReadsLeases
from lastcall.lab.simulation.seeds import random_of
from lastcall.lab.simulation.weather import Exposed, Weather
from lastcall.lab.virtual import Process
from lastcall.lab.volumes.storage import Storage
from lastcall.ports import Clock

_OWN_LEASE = Key("leases.coordination.k8s.io", "kube-system", "apiserver")


class Plane:
    """``weather`` is what becomes of requests on their way; the store outlives everything, as etcd does.

    ``authorization`` by RBAC costs time and decides nothing else: the programs ask for nothing that they may not.
    """

    def __init__(
        self,
        clock: Clock,
        seed: str,
        storage: Storage,
        weather: Weather,
        pace: Pace,
        authorization: Authorization = Authorization.ALWAYS_ALLOW,
    ) -> None:
        self._clock = clock
        self._seed = seed
        self._storage = storage
        self._pace = pace
        self._lives = 0
        self._by_role = authorization is Authorization.RBAC
        roles = identities.cluster_roles() if self._by_role else ()
        self.server = ApiServer(clock, random_of(seed, "api server"), authorization=authorization, roles=roles)
        self.heartbeats = Heartbeats(self.server.store, clock)
        self.weather = weather
        self._note_revisions()
        self.admin = Client(self._reach(ADMIN), manager="kubectl")
        """Straight into the server, whatever the weather: how the scenario itself acts and looks."""
        self.manager = Process("controllers")

    def reach(self, user: Identity, program: str) -> Transport:
        """How a program reaches the server."""
        return Exposed(self._reach(user), self.weather, program)

    def _reach(self, user: Identity) -> Transport:
        return ReadsLeases(InProcess(self.server, user), self.heartbeats)

    def start_controllers(self) -> None:
        """A new life of all of them, in one process as in a kube-controller-manager."""
        self._lives += 1
        self.manager = Process("controllers")
        random = random_of(self._seed, f"controllers/{self._lives}")
        client = self._controllers(identities.MANAGER)
        writing = identities.writers(self._controllers) if self._by_role else None
        runner = Runner(
            ClusterClient(client, self._clock, random, pace=self._pace, writing=writing),
            self._clock,
            every("", storage=self._storage, renewals=self.heartbeats.last, roles=self._by_role),
        )
        self.manager.start(runner.run(), "controllers")

    def _controllers(self, user: Identity) -> Client:
        return Client(self.reach(user, "controllers"), manager="kube-controller-manager")

    def stop(self) -> None:
        """Nobody reaches it any more."""
        self.weather.down = True
        self.server.watcher.hang_up()

    def start(self) -> None:
        """Everything is there that was acknowledged, but no history: a watch cache begins anew with each life.

        The first that it writes is its own lease, as every API server does (KEP-1965). So the last revision that anybody
        knows is an old one, and all who watched list anew.
        """
        self._renew()
        self.compact()
        self.weather.down = False

    def _renew(self) -> None:
        store, renewed = self.server.store, {"renewTime": micro_timestamp(self._clock.wall())}
        before = store.get(_OWN_LEASE)
        metadata = {"name": _OWN_LEASE.name, "namespace": _OWN_LEASE.namespace, "uid": "apiserver"}
        lease = before.object() | {"spec": renewed} if before else {"metadata": metadata, "spec": renewed}
        store.put(_OWN_LEASE, lease, expected=before.revision if before else None)

    def _note_revisions(self) -> None:
        store, weather = self.server.store, self.weather
        before = store.on_change

        def hear(change: Change) -> None:
            before(change)
            weather.note_revision(change.new.revision)

        store.on_change = hear

    def compact(self) -> None:
        """Forgets all history: who falls behind now hears 410 Gone."""
        self.weather.forget_revisions()
        self.server.store.compact(self.server.store.revision)
