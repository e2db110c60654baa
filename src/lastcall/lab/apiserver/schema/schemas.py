"""The schemas of all kinds that are served."""

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema.types import Node, Types
from lastcall.lab.apiserver.scheme import Resource, Scheme


class Schemas:
    """The schemas of all kinds that are served."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self.types = Types()
        self._nodes: dict[Resource, Node | None] = {}

    def of(self, resource: Resource) -> Node | None:
        """The type of the resource's objects; None if nothing is known of it.

        ``node.at("spec").at("containers").element`` is a container; ``patch_strategy``, ``merge_key``, ``list_type``,
        ``list_keys`` and ``atomic`` say how a list or a map merges.
        """
        if resource not in self._nodes:
            self._nodes[resource] = self.types.find(resource.group, resource.version, resource.kind)
        return self._nodes[resource]

    def checked(self, obj: Object, context: Context) -> Object:
        """The object of a body, with kind and apiVersion. ApiError if types or, when asked for, names are wrong."""
        resource = context.route.resource
        if not isinstance(obj, dict):
            raise status.bad_request("the body is no object")
        return {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
