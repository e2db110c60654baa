"""``AdmissionReview`` of admission.k8s.io about a new pod, and the Services of its namespace (pure)."""

from typing import Final

import msgspec

from lastcall.errors import InvalidInput
from lastcall.model.admission import VERSIONS, Review
from lastcall.model.base import Facts
from lastcall.model.pods import ObjectMetadata, Pod

MOST_SETTLE_SECONDS: Final = 600
"""The longest sleep in front of SIGTERM that may be configured."""


class _PodResource(Facts, frozen=True):
    group: str = ""
    resource: str = ""


class _CreationRequest(Facts, frozen=True):
    uid: str
    operation: str
    resource: _PodResource
    sub_resource: str = ""
    namespace: str = ""
    object: Pod | None = None


class _CreationReview(Facts, frozen=True):
    kind: str
    api_version: str
    request: _CreationRequest


class PodCreation(Facts, frozen=True):
    """One AdmissionReview; ``pod`` is None if it asks about something else than a new pod."""

    review: Review
    namespace: str
    pod: Pod | None


class ServicePort(Facts, frozen=True):
    """v1.ServicePort. Without ``target_port`` requests go to the same port of the pod."""

    port: int
    target_port: int | str | None = None

    @property
    def target(self) -> int | str:
        """The port of the pod, or its name."""
        return self.target_port or self.port


class PodServiceSpec(Facts, frozen=True):
    """v1.ServiceSpec."""

    type: str = "ClusterIP"
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] | None = None


class PodService(Facts, frozen=True):
    """v1.Service, as far as it says which pods it selects, and which of their ports it uses."""

    metadata: ObjectMetadata
    spec: PodServiceSpec = PodServiceSpec()


_REVIEWS = msgspec.json.Decoder(_CreationReview)


def parse_pod_creation(data: bytes, source: str) -> PodCreation:
    """The review in a JSON text. InvalidInput if it is none, or lacks what an answer needs."""
    try:
        whole = _REVIEWS.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(source, [f"not an AdmissionReview about a pod: {error}"]) from error
    if whole.kind != "AdmissionReview" or whole.api_version not in VERSIONS or not whole.request.uid:
        raise InvalidInput(source, [f"not an AdmissionReview of {' or '.join(VERSIONS)} with a uid"])
    request = whole.request
    what = (request.resource.group, request.resource.resource, request.sub_resource, request.operation)
    return PodCreation(
        review=Review(version=whole.api_version, uid=request.uid, removal=None),
        namespace=request.namespace,
        pod=request.object if what == ("", "pods", "", "CREATE") else None,
    )
