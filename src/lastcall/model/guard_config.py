"""``GuardConfiguration`` of ``lastcall.dev/v1alpha1``: the file with what an administrator decides about all holds (pure).

``lastcall guard run`` and ``lastcall guard review`` read it, so that both give the same answers.
"""

import functools
import re
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from lastcall.errors import InvalidInput
from lastcall.model import config_file, decoding
from lastcall.model.base import Facts
from lastcall.model.patterns import NAME
from lastcall.names import AGENT_USER, API_VERSION, GUARD_CONFIGURATION, GUARD_RELEASER, SYSTEM_NAMESPACE

NEVER_GUARDED = ("kube-system", SYSTEM_NAMESPACE)
"""Namespaces whose pods are never held: a cluster without them cannot mend itself."""

STATUS_COMMAND = "kubectl get guardpolicy {policy} --namespace {namespace} -o yaml"

_PLACES = ("policy", "namespace", "pod")
"""What ``statusCommand`` may name in braces."""

_Namespace = Annotated[str, Meta(pattern=NAME)]


class GuardConfig(Facts, frozen=True):
    """The guard's settings that change its answers."""

    namespace: _Namespace = SYSTEM_NAMESPACE
    """The guard's own. Its pods are never held, and its ServiceAccounts are those of releaser and agents."""
    unguarded_namespaces: Annotated[tuple[_Namespace, ...], Meta(max_length=1000)] = ()
    """More namespaces whose pods are never held."""
    ready_seconds: Annotated[float, Meta(ge=10, le=60)] = 10.0
    """How long the provider's word counts that the application is ready: it may be lost again at any time."""
    status_command: Annotated[str, Meta(max_length=300)] = STATUS_COMMAND
    """What a refusal names as the command that shows more."""

    @property
    def releaser(self) -> str:
        """The user who deletes ready pods for the guard."""
        return _own_user(GUARD_RELEASER, self.namespace)

    @property
    def agent_user(self) -> str:
        """The user of agents that have an identity of their own."""
        return _own_user(AGENT_USER, self.namespace)

    def may_guard(self, namespace: str) -> bool:
        """Whether pods of a namespace may be held at all."""
        return (
            namespace != self.namespace
            and namespace not in NEVER_GUARDED
            and namespace not in self.unguarded_namespaces
        )

    def format_command(self, *, policy: str, namespace: str, pod: str) -> str:
        """``statusCommand`` for one pod."""
        return self.status_command.format(policy=policy, namespace=namespace, pod=pod)


DEFAULTS = GuardConfig()
"""Without a file."""


def parse_guard_config(data: bytes, source: str) -> GuardConfig:
    """Parses a configuration file; ``source`` is its name in errors. InvalidInput has all violations at once."""
    document = config_file.read_document(data, source, {GUARD_CONFIGURATION: API_VERSION})
    config, wrong = decoding.convert_readable(document, GuardConfig)
    wrong += config_file.list_unknown_fields(document, ["apiVersion", "kind", *config_file.field_names(GuardConfig)])
    wrong += _command_violations(document.get("statusCommand"))
    if wrong or config is None:
        raise InvalidInput(source, wrong)
    return config


def _command_violations(command: Any) -> Iterator[str]:
    if not isinstance(command, str):
        return
    shown = f"statusCommand: {decoding.quote_value(command)}"
    if not command.isprintable() or not command.strip():
        yield f"{shown}: must be one line of printable text"
    rest = re.sub("|".join(rf"\{{{one}\}}" for one in _PLACES), "", command)
    if "{" in rest or "}" in rest:
        yield f"{shown}: may have {', '.join(f'{{{one}}}' for one in _PLACES)}, and no other braces"


@functools.cache
def _own_user(user: str, namespace: str) -> str:
    """The user of a ServiceAccount of the same name in another namespace."""
    parts = user.split(":")
    return ":".join((*parts[:2], namespace, parts[3]))
