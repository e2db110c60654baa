"""What Kubernetes' OpenAPI documents say about the fields of a kind."""

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Scheme


class Schemas:
    """The schemas of all kinds that are served."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def checked(self, obj: Object, context: Context) -> Object:
        """The object of a body, with kind and apiVersion. ApiError if types or, when asked for, names are wrong."""
        resource = context.route.resource
        if not isinstance(obj, dict):
            raise status.bad_request("the body is no object")
        return {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
