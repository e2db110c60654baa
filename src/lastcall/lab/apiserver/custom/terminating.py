"""No new objects of a definition that is being deleted."""

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.custom.definitions import Definitions


class Terminating(Plugin):
    """Refuses to create them (``forbidCreateAdmission``)."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    async def mutate(self, attributes: Attributes) -> None:
        """ApiError if the definition is being deleted."""
        resource = attributes.resource
        if attributes.operation == "CREATE" and self._definitions.terminating(resource):
            why = "create not allowed while custom resource definition is terminating"
            raise status.forbidden(resource.plural, resource.group, attributes.name, why)
