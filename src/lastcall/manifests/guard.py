"""All objects that ``lastcall guard run`` needs in a cluster, and those of a guarded namespace (pure).

Applying them again changes nothing: the fields that the guard writes are not part of them. The certificate's authority in
the webhook configuration is such a field, so ``kubectl apply`` keeps it.
"""

import re
from dataclasses import dataclass
from typing import Final

import yaml

from lastcall import names
from lastcall.errors import InvalidInput
from lastcall.manifests import namespaces
from lastcall.manifests.controller import IMAGE, image_violations
from lastcall.manifests.guard_deployment import (
    guard_budget,
    guard_config_map,
    guard_deployment,
    guard_network_policy,
    guard_service,
)
from lastcall.manifests.guard_eviction_grants import eviction_request_grants
from lastcall.manifests.guard_grants import ACCESS, NAME, RELEASER, access_grants, guard_grants, releaser_grants
from lastcall.manifests.guard_policy_definition import guard_policy_definition
from lastcall.manifests.guard_provider_rights import provider_rights_binding, provider_rights_policy
from lastcall.manifests.guard_responder_policy import responder_policy_objects
from lastcall.manifests.guard_webhooks import FAIL, IGNORE, guard_webhook_configuration, service_client
from lastcall.manifests.rbac import Grant, Object, role_rules
from lastcall.manifests.role_bindings import role_objects
from lastcall.manifests.settle_webhook import settle_webhook_configuration, settle_webhook_grants
from lastcall.manifests.uninstall_webhook import uninstall_webhook_configuration
from lastcall.model.decoding import parse_documents, quote_value
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.model.guard_config import parse_guard_config
from lastcall.model.patterns import NAME as DNS_LABEL
from lastcall.model.patterns import SUBDOMAIN
from lastcall.names import SYSTEM_NAMESPACE

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class GuardChoices:
    """The choices that differ between clusters. Raises InvalidInput for an invalid one."""

    image: str = IMAGE
    replicas: int = 2
    failure_policy: str = IGNORE
    eviction_requests: EvictionRequestMode = EvictionRequestMode.OFF
    settle_seconds: int | None = None
    """The sleep of new pods where nobody gives a number; None: no webhook for new pods."""
    config: bytes = b""
    """The content of a GuardConfiguration's file; empty for the defaults."""
    client_ca_secret: str = ""
    """The Secret with the authority of the API server's certificate; empty for none."""

    def __post_init__(self) -> None:
        wrong = image_violations(self.image)
        if self.replicas < 0:
            wrong.append(f"--replicas: {self.replicas}: must be 0 or more")
        if self.failure_policy not in (IGNORE, FAIL):
            wrong.append(f"--failure-policy: {quote_value(self.failure_policy)}: must be {IGNORE} or {FAIL}")
        if self.client_ca_secret and not re.fullmatch(SUBDOMAIN, self.client_ca_secret):
            wrong.append(f"--client-ca-secret: {quote_value(self.client_ca_secret)}: must be the name of a Secret")
        if self.config and (own := parse_guard_config(self.config, "--config").namespace) != SYSTEM_NAMESPACE:
            wrong.append(
                f"--config: namespace: {quote_value(own)}: must be {SYSTEM_NAMESPACE}, where these objects are"
            )
        if wrong:
            raise InvalidInput("manifests", wrong)

    @property
    def config_text(self) -> str:
        """The configuration with its fields in the order of the alphabet, as Helm writes them; "" for none."""
        return yaml.safe_dump(parse_documents(self.config, "--config")[0]) if self.config else ""


def guard_labels() -> dict[str, str]:
    """The labels of all the guard's objects."""
    return {
        "app.kubernetes.io/name": "lastcall",
        "app.kubernetes.io/component": "guard",
        "app.kubernetes.io/part-of": "lastcall",
    }


def guard_objects(choices: GuardChoices) -> list[Object]:
    """All of them, in an order in which they can be created: the webhook comes last."""
    namespace, labels, config = SYSTEM_NAMESPACE, guard_labels(), choices.config_text
    return [
        namespaces.system_namespace(),
        guard_policy_definition(),
        _base_object("v1", "ServiceAccount", NAME, namespace),
        _base_object("v1", "ServiceAccount", RELEASER, namespace),
        *role_objects(_list_grants(choices, namespace), to=NAME, of=namespace, labels=labels),
        _cluster_role(ACCESS, access_grants()),
        _cluster_role(RELEASER, releaser_grants()),
        {**_base_object("coordination.k8s.io/v1", "Lease", NAME, namespace), "spec": {}},
        {**_base_object("v1", "Secret", f"{NAME}-tls", namespace), "type": "Opaque"},
        guard_service(namespace, labels),
        guard_budget(namespace, labels),
        guard_network_policy(namespace, labels),
        *([guard_config_map(namespace, labels, config)] if config else []),
        guard_deployment(
            namespace,
            labels,
            image=choices.image,
            replicas=choices.replicas,
            eviction_requests=choices.eviction_requests,
            settle_seconds=choices.settle_seconds,
            config=config,
            client_ca_secret=choices.client_ca_secret,
        ),
        provider_rights_policy(labels),
        provider_rights_binding(labels),
        *_responder_objects(choices, labels),
        *_settle_objects(choices, labels),
        uninstall_webhook_configuration(service_client(namespace), labels=labels),
        guard_webhook_configuration(service_client(namespace), failure_policy=choices.failure_policy, labels=labels),
    ]


def _list_grants(choices: GuardChoices, namespace: str) -> list[Grant]:
    settling = [] if choices.settle_seconds is None else settle_webhook_grants()
    return [*guard_grants(namespace), *eviction_request_grants(choices.eviction_requests), *settling]


def _responder_objects(choices: GuardChoices, labels: dict[str, str]) -> list[Object]:
    off = choices.eviction_requests is EvictionRequestMode.OFF
    return [] if off else responder_policy_objects(labels)


def _settle_objects(choices: GuardChoices, labels: dict[str, str]) -> list[Object]:
    if choices.settle_seconds is None:
        return []
    return [settle_webhook_configuration(service_client(SYSTEM_NAMESPACE), labels=labels)]


def guarded_namespace_objects(namespace: str) -> list[Object]:
    """What makes a namespace a guarded one: its label, and the guard's rights in it. InvalidInput for a bad name."""
    if not re.fullmatch(DNS_LABEL, namespace):
        raise InvalidInput("manifests", [f"NAMESPACE: {quote_value(namespace)}: must be small letters, digits and -"])
    labels = {**guard_labels()}
    guarded = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": namespace, "labels": {names.GUARD_ENABLED: "true"}},
    }
    return [
        guarded,
        _role_binding(namespace, ACCESS, NAME, labels),
        _role_binding(namespace, RELEASER, RELEASER, labels),
    ]


def _base_object(version: str, kind: str, name: str, namespace: str) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": guard_labels()},
    }


def _cluster_role(name: str, grants: list[Grant]) -> Object:
    metadata = {"name": name, "labels": guard_labels()}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": role_rules(grants)}


def _role_binding(namespace: str, role: str, account: str, labels: dict[str, str]) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace, "labels": labels},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}],
    }
