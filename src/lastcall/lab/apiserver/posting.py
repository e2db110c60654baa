"""Objects that are posted and never stored, such as a Binding or a review: they pass admission as new objects do."""

from typing import TYPE_CHECKING

from lastcall.lab.apiserver.admission.chain import Attributes
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer


async def mutate(server: "ApiServer", context: Context, obj: Object) -> Attributes:
    """Records whose fields they are, and lets admission change the object; ``server.admission.validate`` takes the result.

    ApiError if somebody refuses.
    """
    route = context.route
    shape = server.shape(obj, route.resource)
    server.managed.posted(obj, shape, context.manager, route.subresource, server.clock.wall())
    attributes = Attributes.of(context, "CREATE", obj)
    await server.admission.mutate(attributes)
    return attributes
