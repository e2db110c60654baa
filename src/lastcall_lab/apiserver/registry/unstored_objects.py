"""Objects that are posted and never stored, such as a Binding or a review; admission applies to them."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values.request import Object


async def admit_unstored(registry: Registry, context: RequestContext, obj: Object) -> AdmissionAttributes:
    """Records field ownership and runs mutating admission; pass the result to ``registry.admission.validate``.

    ApiError if admission rejects the object.
    """
    route = context.route
    shape = registry.managed.shape_of_object(obj, route.resource)
    registry.managed.record_posted(obj, shape, context.field_manager, route.subresource, registry.clock.wall())
    attributes = AdmissionAttributes.of(context, "CREATE", obj)
    await registry.admission.mutate(attributes)
    return attributes
