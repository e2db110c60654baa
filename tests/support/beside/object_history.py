"""What a cluster's objects were, and when: each version that a watch has brought."""

import asyncio
import contextlib
import time
from random import Random
from typing import NamedTuple

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig, resources
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.aio import cancel_and_wait

FOLLOWED = (
    resources.NODES,
    resources.PODS,
    resources.ENDPOINT_SLICES,
    resources.LEASES,
    resources.ATTACHMENTS,
    resources.JOBS,
    resources.NODE_SHUTDOWNS,
)


class Version(NamedTuple):
    """An object as it was from ``at`` on (CLOCK_BOOTTIME, never too early); ``gone``: as it was last."""

    at: float
    plural: str
    obj: dict
    gone: bool

    @property
    def name(self):
        return self.obj["metadata"]["name"]


class ObjectHistory:
    """All versions of all objects of these kinds."""

    def __init__(self, config) -> None:
        self._config = config
        self.versions: list[Version] = []

    @contextlib.asynccontextmanager
    async def following(self):
        """Follows them while the context lasts."""
        access = kubeconfig.load_kubeconfig([self._config], SystemClock())
        http = HttpsTransport(access.endpoint, access.credentials)
        tasks = [asyncio.create_task(self._follow(Client(http), kind)) for kind in FOLLOWED]
        try:
            yield self
        finally:
            await cancel_and_wait(*tasks)
            http.close()

    async def _follow(self, client, kind):
        watch = Informer(client, kind, clock=SystemClock(), random=Random(1))
        async for change in watch.changes():
            if change.new is not None:
                gone = change.kind is ChangeKind.DELETED
                at = time.clock_gettime(time.CLOCK_BOOTTIME)
                self.versions.append(Version(at, kind.plural, change.new, gone))

    def of(self, plural, name="", *, since=0.0, until=float("inf")):
        """The versions of the objects whose names begin so."""
        return [v for v in self.versions if v.plural == plural and v.name.startswith(name) and since <= v.at <= until]

    def newest(self, plural, name):
        """The object as it is; None if there is none."""
        found = [v for v in self.versions if v.plural == plural and v.name == name]
        return None if not found or found[-1].gone else found[-1].obj

    def current(self, plural, name=""):
        """The objects of today whose names begin so."""
        last = {v.obj["metadata"]["uid"]: v for v in self.of(plural, name)}
        return [v.obj for v in last.values() if not v.gone]
