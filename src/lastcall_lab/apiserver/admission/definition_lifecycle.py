"""Rejects new custom resources while their definition is being deleted."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.custom.definition_registry import DefinitionRegistry
from lastcall_lab.apiserver.values import api_errors


class DefinitionLifecycle(AdmissionPlugin):
    """The plugin (``forbidCreateAdmission``)."""

    def __init__(self, definitions: DefinitionRegistry) -> None:
        self._definitions = definitions

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """ApiError if the definition is being deleted."""
        resource = attributes.resource
        if attributes.operation == "CREATE" and self._definitions.is_terminating(resource):
            why = "create not allowed while custom resource definition is terminating"
            raise api_errors.forbidden_error(resource.plural, resource.group, attributes.name, why)
