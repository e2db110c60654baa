"""The agent's configuration: the kubelet's own fields for graceful shutdown, their defaults and their rules.

Two kinds of files are read. A ``KubeletConfiguration`` (kubelet.config.k8s.io/v1beta1) is taken as it is, and what has
nothing to do with shutdown is passed over. An ``AgentConfiguration`` (lastcall.dev/v1alpha1) has the same fields and
``mode``, and nothing else: an unknown field is an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from lastcall import names
from lastcall.errors import InvalidInput
from lastcall.graceful import rules
from lastcall.graceful.rules import Periods
from lastcall.model import decode, duration
from lastcall.model.base import Facts
from lastcall.model.pods import SYSTEM_CRITICAL, Int32, Int64
from lastcall.model.shutdown import Mode, PhasePlan

KUBELET_KIND = "KubeletConfiguration"
KUBELET_API_VERSION = "kubelet.config.k8s.io/v1beta1"
GRACEFUL_GATE = "GracefulNodeShutdown"
PRIORITY_GATE = "GracefulNodeShutdownBasedOnPodPriority"

_API_VERSIONS = {KUBELET_KIND: KUBELET_API_VERSION, names.AGENT_CONFIGURATION: names.API_VERSION}


class AgentConfig(Facts, frozen=True):
    """What the agent does when the node goes down.

    ``kind`` is that of the file. ``groups`` are ascending by priority; none means that graceful shutdown is off.
    ``static_pod_path`` is KubeletConfiguration's staticPodPath: where manifests of static pods lie, "" if nowhere.
    """

    kind: str
    groups: tuple[PhasePlan, ...] = ()
    mode: Mode = Mode.ENFORCE
    static_pod_path: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def enabled(self) -> bool:
        """Whether anything is delayed at all."""
        return bool(self.groups)

    @property
    def requested_seconds(self) -> int:
        """What the phases ask for together, empty ones included, as the kubelet asks logind."""
        return sum(group.seconds for group in self.groups)


class _Group(Facts, frozen=True):
    """One item of shutdownGracePeriodByPodPriority; Go's zero stands for what is left out."""

    priority: Int32 = 0
    shutdown_grace_period_seconds: Int64 = 0


class _KubeletFile(Facts, frozen=True):
    """The fields that both kinds have, and staticPodPath."""

    shutdown_grace_period: str | None = None
    shutdown_grace_period_critical_pods: str | None = None
    shutdown_grace_period_by_pod_priority: tuple[_Group, ...] | None = None
    feature_gates: dict[str, bool | None] | None = None
    static_pod_path: str | None = None


class _AgentFile(_KubeletFile, frozen=True):
    """The fields of AgentConfiguration."""

    mode: Mode = Mode.ENFORCE


def read(data: bytes, source: str) -> AgentConfig:
    """The configuration in a file's bytes; ``source`` is the name that errors give it.

    InvalidInput lists every violation at once: wrong types, unknown fields and broken rules.
    """
    document = _only_document(data, source)
    kind = _kind(document, source)
    ours = kind == names.AGENT_CONFIGURATION
    file, violations = decode.collect(document, _AgentFile if ours else _KubeletFile)
    violations += _unknown_fields(document) if ours else []
    file = file or _KubeletFile()
    periods, wrong = _periods(file)
    violations += wrong + rules.kubelet_violations(periods) + rules.own_errors(periods)
    concerns = rules.own_concerns(periods)
    violations += concerns if ours else []
    if violations:
        raise InvalidInput(source, violations)
    return AgentConfig(
        kind=kind,
        groups=_groups(periods),
        mode=file.mode if isinstance(file, _AgentFile) else Mode.ENFORCE,
        static_pod_path=file.static_pod_path or "",
        warnings=(*concerns, *rules.warnings(periods)),
    )


def _only_document(data: bytes, source: str) -> dict[str, Any]:
    documents = decode.documents(data, source)
    expected = f"expected one {KUBELET_KIND} or {names.AGENT_CONFIGURATION}"
    if len(documents) != 1:
        found = f"{len(documents)} documents" if documents else "empty"
        raise InvalidInput(source, [f"document: {found}: {expected}"])
    if not isinstance(documents[0], dict):
        raise InvalidInput(source, [f"document: {decode.shown(documents[0])}: {expected}"])
    return documents[0]


def _kind(document: Mapping[str, Any], source: str) -> str:
    kind, version = document.get("kind"), document.get("apiVersion")
    known = " or ".join(_API_VERSIONS)
    if not isinstance(kind, str) or kind not in _API_VERSIONS:
        shown = "missing" if kind is None else decode.shown(kind)
        raise InvalidInput(source, [f"kind: {shown}: must be {known}"])
    if version != _API_VERSIONS[kind]:
        shown = "missing" if version is None else decode.shown(version)
        raise InvalidInput(source, [f"apiVersion: {shown}: must be {_API_VERSIONS[kind]} for kind {kind}"])
    return kind


def _periods(file: _KubeletFile) -> tuple[Periods, list[str]]:
    wrong: list[str] = []
    gates = file.feature_gates or {}
    periods = Periods(
        total=_duration("shutdownGracePeriod", file.shutdown_grace_period, wrong),
        critical=_duration("shutdownGracePeriodCriticalPods", file.shutdown_grace_period_critical_pods, wrong),
        by_priority=tuple(
            PhasePlan(priority=group.priority, seconds=group.shutdown_grace_period_seconds)
            for group in file.shutdown_grace_period_by_pod_priority or ()
        ),
        graceful_gate=bool(gates.get(GRACEFUL_GATE, True)),
        priority_gate=bool(gates.get(PRIORITY_GATE, True)),
    )
    return periods, wrong


def _duration(field: str, text: str | None, wrong: list[str]) -> int:
    if text is None:
        return 0
    try:
        return duration.parse(text)
    except ValueError as error:
        wrong.append(f"{field}: {decode.shown(text)}: {error}")
        return 0


def _groups(periods: Periods) -> tuple[PhasePlan, ...]:
    """The kubelet's choice between the two forms (nodeshutdown_manager.go: newPodManager, migrateConfig)."""
    if not periods.graceful_gate:
        return ()
    if periods.priority_gate and periods.by_priority:
        return tuple(sorted(periods.by_priority, key=lambda group: group.priority))
    if periods.total == 0 or periods.critical > periods.total:
        return ()
    return (
        PhasePlan(priority=0, seconds=(periods.total - periods.critical) // duration.SECOND),
        PhasePlan(priority=SYSTEM_CRITICAL, seconds=periods.critical // duration.SECOND),
    )


def _unknown_fields(document: Mapping[str, Any]) -> list[str]:
    known = ["apiVersion", "kind", *(n for n in _names(_AgentFile) if n != "staticPodPath")]
    found = [*_unknown(document, known, "")]
    groups = document.get("shutdownGracePeriodByPodPriority")
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        found += _unknown(group, _names(_Group), f"{rules.LIST}[{index}].")
    found += _unknown(document.get("featureGates"), [GRACEFUL_GATE, PRIORITY_GATE], "featureGates.")
    return found


def _names(struct: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(struct)]


def _unknown(value: Any, known: Sequence[str], at: str) -> Iterator[str]:
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            close = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            yield f"{at}{name}: {decode.shown(value[name])}: unknown field, {hint}"
