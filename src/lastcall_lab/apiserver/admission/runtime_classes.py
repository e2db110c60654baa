"""RuntimeClass admission: the lab has no RuntimeClasses, so no pod can name one."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error


class RuntimeClasses(AdmissionPlugin):
    """Handles new pods."""

    sees = ("pods",)

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Rejects a pod that names a class."""
        if not _new_pod(attributes) or attributes.obj is None:
            return
        name = attributes.obj["spec"].get("runtimeClassName")
        if name is not None:
            raise refusal_error(attributes, f'pod rejected: RuntimeClass "{name}" not found')

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Rejects an overhead, which only a class could define."""
        if _new_pod(attributes) and attributes.obj is not None and attributes.obj["spec"].get("overhead") is not None:
            raise refusal_error(
                attributes, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )


def _new_pod(attributes: AdmissionAttributes) -> bool:
    return attributes.operation == "CREATE" and not attributes.subresource
