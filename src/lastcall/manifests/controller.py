"""All objects that ``lastcall controller`` needs in a cluster (pure).

Applying them again changes nothing: the fields that the controller and others write are not part of them.
"""

import re
from dataclasses import dataclass

from lastcall import __version__
from lastcall.errors import InvalidInput
from lastcall.guard.decisions.webhook_withdrawal import DEFAULT_SECONDS, NEVER, SHORTEST_SECONDS
from lastcall.manifests import namespaces, resource_definitions
from lastcall.manifests.controller_grants import all_grants
from lastcall.manifests.deployment import controller_deployment, disruption_budget
from lastcall.manifests.labels import NAME, common_labels
from lastcall.manifests.network_policy import controller_network_policy
from lastcall.manifests.rbac import Object
from lastcall.manifests.role_bindings import role_objects
from lastcall.model.decoding import quote_value
from lastcall.model.duration import format_seconds
from lastcall.model.patterns import NAME as DNS_LABEL
from lastcall.names import NODES_NAMESPACE, SYSTEM_NAMESPACE

NAMESPACE = SYSTEM_NAMESPACE
EXTERNAL, OWN = "external", "own"
"""The detaching component, as in ``lastcall controller --attach-detach``."""
IMAGE = f"lastcall:{__version__}"

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,510}")


def image_violations(image: str) -> list[str]:
    """What is wrong with the value of ``--image``; empty if nothing is."""
    return [] if _IMAGE.fullmatch(image) else [f"--image: {quote_value(image)}: must be the name of an image"]


@dataclass(frozen=True, kw_only=True)
class ControllerChoices:
    """The choices that differ between clusters. Raises InvalidInput for an invalid one."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    replicas: int = 2
    attach_detach: str = EXTERNAL
    guard_withdrawal: float = DEFAULT_SECONDS
    """Seconds, as in ``lastcall controller --guard-withdrawal``; NEVER for never."""

    def __post_init__(self) -> None:
        wrong = []
        if not re.fullmatch(DNS_LABEL, self.namespace):
            wrong.append(f"--namespace: {quote_value(self.namespace)}: must be small letters, digits and -, at most 63")
        if self.namespace == NODES_NAMESPACE:
            wrong.append(f"--namespace: {NODES_NAMESPACE}: agents write there, so no election may be held there")
        wrong += image_violations(self.image)
        if self.replicas < 0:
            wrong.append(f"--replicas: {self.replicas}: must be 0 or more")
        if self.attach_detach not in (EXTERNAL, OWN):
            wrong.append(f"--attach-detach: {quote_value(self.attach_detach)}: must be {EXTERNAL} or {OWN}")
        if not self.guard_withdrawal >= SHORTEST_SECONDS:
            wrong.append(
                f"--guard-withdrawal: {self.guard_withdrawal:g}s: must be {SHORTEST_SECONDS:g}s or more, or never"
            )
        if wrong:
            raise InvalidInput("manifests", wrong)


def controller_objects(choices: ControllerChoices) -> list[Object]:
    """All of them, in an order in which they can be created."""
    namespace, detach = choices.namespace, choices.attach_detach == OWN
    return [
        *([] if namespace == SYSTEM_NAMESPACE else [namespaces.namespace_object(namespace, common_labels())]),
        namespaces.system_namespace(),
        namespaces.nodes_namespace(),
        resource_definitions.fence_policy_definition(),
        resource_definitions.node_shutdown_definition(),
        _base_object("v1", "ServiceAccount", namespace),
        *role_objects(all_grants(namespace, detach=detach), to=NAME, of=namespace, labels=common_labels()),
        {**_base_object("coordination.k8s.io/v1", "Lease", namespace), "spec": {}},
        disruption_budget(namespace),
        controller_network_policy(namespace),
        controller_deployment(namespace, image=choices.image, replicas=choices.replicas, arguments=_arguments(choices)),
    ]


def _arguments(choices: ControllerChoices) -> list[str]:
    """The options that differ from the program's defaults."""
    detach = ["--attach-detach=own"] if choices.attach_detach == OWN else []
    seconds = choices.guard_withdrawal
    text = "never" if seconds == NEVER else format_seconds(seconds)
    return [*detach, *([] if seconds == DEFAULT_SECONDS else [f"--guard-withdrawal={text}"])]


def _base_object(api_version: str, kind: str, namespace: str) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": NAME, **where, "labels": common_labels()}}
