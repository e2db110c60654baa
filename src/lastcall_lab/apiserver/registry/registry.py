"""The parts that every verb on objects needs, in one place: the store, the types, admission, and the verbs themselves."""

from collections.abc import Sequence
from random import Random

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.chain import AdmissionPlugin
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.patches.managed_fields import ManagedFields
from lastcall_lab.apiserver.registry.body_worker import BodyWorker
from lastcall_lab.apiserver.registry.deletes import ObjectRemover
from lastcall_lab.apiserver.registry.reads import ObjectReader
from lastcall_lab.apiserver.registry.watches import Watcher
from lastcall_lab.apiserver.registry.writes import ObjectWriter
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values.request import Object


class Registry:
    """The objects of one API server. ``offload`` runs work on large bodies, outside the event loop if it likes.

    Subresources and patches take a Registry, so that nothing below the server depends on the server.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: Random,
        *,
        schemas: Schemas,
        managed: ManagedFields,
        admission: AdmissionPlugin,
        offload: BodyWorker,
    ) -> None:
        self.store = store
        self.clock = clock
        self.schemas = schemas
        self.managed = managed
        self.admission = admission
        self.offload = offload
        self.reader = ObjectReader(store)
        self.watcher = Watcher(store, clock, random)
        self.writer = ObjectWriter(store, clock, random, admission, managed, offload)
        self.remover = ObjectRemover(store, clock, admission)

    async def read_body(
        self, context: RequestContext, wanted: GroupVersionKind | None = None, *, also: Sequence[str] = ()
    ) -> Object:
        """``Schemas.read``: the object in the body of a POST or PUT. ApiError if the body does not hold one."""
        return await self.offload(context.request, lambda: self.schemas.read(context, wanted, also=also))
