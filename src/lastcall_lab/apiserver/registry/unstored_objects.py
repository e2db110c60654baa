"""Objects that are posted and never stored, such as a Binding or a review: they pass admission as new objects do."""

from typing import TYPE_CHECKING

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values.request import Object

if TYPE_CHECKING:
    from lastcall_lab.apiserver.server.api_server import ApiServer


async def admit_unstored(server: "ApiServer", context: RequestContext, obj: Object) -> AdmissionAttributes:
    """Records whose fields they are, and lets admission change the object; ``server.admission.validate`` takes the result.

    ApiError if somebody refuses.
    """
    route = context.route
    shape = server.shape_of(obj, route.resource)
    server.managed.record_posted(obj, shape, context.field_manager, route.subresource, server.clock.wall())
    attributes = AdmissionAttributes.of(context, "CREATE", obj)
    await server.admission.mutate(attributes)
    return attributes
