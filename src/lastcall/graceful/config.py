"""The agent's configuration: the kubelet's own fields for graceful shutdown, their defaults and their rules.

Two kinds of files are accepted. A ``KubeletConfiguration`` (kubelet.config.k8s.io/v1beta1) is read unchanged, and its
fields that do not concern shutdown are ignored. An ``AgentConfiguration`` (lastcall.dev/v1alpha1) has the same fields
plus ``mode``, ``watchdog``, ``storageLease``, ``traffic`` and ``deadlines``; any other field in it is an error.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from lastcall import names
from lastcall.errors import InvalidInput
from lastcall.graceful import config_rules
from lastcall.graceful.config_rules import GracePeriods, PriorityItem
from lastcall.model import decoding, duration
from lastcall.model.base import Facts
from lastcall.model.config_file import field_names, list_unknown_fields, read_document
from lastcall.model.deadline_settings import (
    AzureSettings,
    DeadlineSettings,
    Ec2SpotSettings,
    GcpSettings,
    NutSettings,
    SocketSettings,
)
from lastcall.model.pods import SYSTEM_CRITICAL, Int32, Int64
from lastcall.model.shutdown import PhasePlan, ShutdownMode
from lastcall.model.storage_lease import SanlockSettings, StorageLeaseSettings
from lastcall.model.traffic import TrafficSettings
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings

KUBELET_KIND = "KubeletConfiguration"
KUBELET_API_VERSION = "kubelet.config.k8s.io/v1beta1"
GRACEFUL_GATE = "GracefulNodeShutdown"
PRIORITY_GATE = "GracefulNodeShutdownBasedOnPodPriority"

_API_VERSIONS = {KUBELET_KIND: KUBELET_API_VERSION, names.AGENT_CONFIGURATION: names.API_VERSION}
_ITEM: dict[str, Any] = {"priority": Int32, "shutdownGracePeriodSeconds": Int64}

_WITHOUT_PHASES = "deadlines: no effect, since no period is configured: a shutdown ends no pods"
_DEADLINE_SOURCES: dict[str, type[msgspec.Struct]] = {
    "socket": SocketSettings,
    "ec2": Ec2SpotSettings,
    "gcp": GcpSettings,
    "azure": AzureSettings,
    "nut": NutSettings,
}

T = TypeVar("T")

_SETTING = {
    "lease": "watchdog.leaseSeconds",
    "pet": "watchdog.petSeconds",
    "timeout": "watchdog.timeoutSeconds",
    "drift": "watchdog.drift",
}


class AgentConfig(Facts, frozen=True):
    """What the agent does when the node shuts down.

    ``kind`` is the kind of the file. ``groups`` are ascending by priority; without groups graceful shutdown is off.
    ``static_pod_path`` is the directory of the static pods' manifests, "" if there is none. Without ``watchdog`` the
    agent opens no watchdog device; without ``storage_lease`` it reports no storage lease.
    """

    kind: str
    groups: tuple[PhasePlan, ...] = ()
    mode: ShutdownMode = ShutdownMode.ENFORCE
    static_pod_path: str = ""
    watchdog: WatchdogSettings | None = None
    storage_lease: StorageLeaseSettings | None = None
    traffic: TrafficSettings = TrafficSettings()
    deadlines: DeadlineSettings = DeadlineSettings()
    warnings: tuple[str, ...] = ()

    @property
    def is_enabled(self) -> bool:
        """Whether the configuration delays shutdowns at all."""
        return bool(self.groups)

    @property
    def requested_seconds(self) -> int:
        """The sum of all phases' seconds, empty phases included: what the kubelet, too, requests from logind."""
        return sum(group.seconds for group in self.groups)


class _ConfigFile(Facts, frozen=True):
    """The fields of both kinds. Fields with rules of their own are ``Any`` here and are checked one by one below."""

    shutdown_grace_period: Any = None
    shutdown_grace_period_critical_pods: Any = None
    shutdown_grace_period_by_pod_priority: tuple[Any, ...] | None = None
    feature_gates: dict[str, Any] | None = None
    static_pod_path: str = ""


class _AgentFile(_ConfigFile, frozen=True):
    """The fields of AgentConfiguration."""

    mode: Any = None
    watchdog: Any = None
    storage_lease: Any = None
    traffic: Any = None
    deadlines: Any = None


_AGENT_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(_AgentFile)}


def parse_config(data: bytes, source: str) -> AgentConfig:
    """Parses a configuration file's bytes; ``source`` is the file's name in errors.

    Raises InvalidInput with all violations at once: wrong types, unknown fields and broken rules.
    """
    document = read_document(data, source, _API_VERSIONS)
    kind: str = document["kind"]
    ours = kind == names.AGENT_CONFIGURATION
    file, wrong = decoding.convert_readable(document, _AgentFile if ours else _ConfigFile)
    file = file or _ConfigFile()
    wrong += _unknown_fields(document) if ours else []
    mode = _parse_mode(file.mode, wrong) if isinstance(file, _AgentFile) else ShutdownMode.ENFORCE
    watchdog = _watchdog_settings(file.watchdog, wrong) if isinstance(file, _AgentFile) else None
    storage = _read_section(file, "storageLease", StorageLeaseSettings, wrong)
    traffic = _read_section(file, "traffic", TrafficSettings, wrong) or TrafficSettings()
    deadlines = _read_section(file, "deadlines", DeadlineSettings, wrong) or DeadlineSettings()
    periods = _read_periods(file, wrong)
    concerns = config_rules.own_concerns(periods)
    wrong += [*config_rules.kubelet_violations(periods), *config_rules.own_errors(periods), *(concerns if ours else ())]
    if wrong:
        raise InvalidInput(source, wrong)
    groups = _phase_groups(periods)
    idle = () if groups or not deadlines.sources else (_WITHOUT_PHASES,)
    return AgentConfig(
        kind=kind,
        groups=groups,
        mode=mode,
        static_pod_path=file.static_pod_path,
        watchdog=watchdog,
        storage_lease=storage,
        traffic=traffic,
        deadlines=deadlines,
        warnings=(*concerns, *config_rules.config_warnings(periods), *idle),
    )


def _read_periods(file: _ConfigFile, wrong: list[str]) -> GracePeriods:
    items = file.shutdown_grace_period_by_pod_priority or ()
    return GracePeriods(
        total=_parse_duration("shutdownGracePeriod", file.shutdown_grace_period, wrong),
        critical=_parse_duration("shutdownGracePeriodCriticalPods", file.shutdown_grace_period_critical_pods, wrong),
        by_priority=tuple(
            _parse_item(item, f"{config_rules.LIST}[{index}]", wrong) for index, item in enumerate(items)
        ),
        graceful_gate=_feature_gate(GRACEFUL_GATE, file, wrong),
        priority_gate=_feature_gate(PRIORITY_GATE, file, wrong),
    )


def _parse_duration(field: str, value: Any, wrong: list[str]) -> int | None:
    """Nanoseconds, or None if the value cannot be read. A bare number is not a duration for the kubelet either."""
    if value is None:
        return 0
    if not isinstance(value, str):
        wrong.append(f'{field}: {decoding.quote_value(value)}: must be a duration as text, such as "30s"')
        return None
    try:
        return duration.parse(value)
    except ValueError as error:
        wrong.append(f"{field}: {decoding.quote_value(value)}: {error}")
        return None


def _parse_item(item: Any, at: str, wrong: list[str]) -> PriorityItem:
    if not isinstance(item, dict):
        wrong.append(f"{at}: {decoding.quote_value(item)}: must be a mapping of {' and '.join(_ITEM)}")
        return PriorityItem(priority=None, seconds=None)
    priority, seconds = (_parse_integer(item.get(name), type_, f"{at}.{name}", wrong) for name, type_ in _ITEM.items())
    return PriorityItem(priority=priority, seconds=seconds)


def _parse_integer(value: Any, type_: Any, at: str, wrong: list[str]) -> int | None:
    """The integer, or None if the value is not one. A missing value is zero, as in Go."""
    number: int | None
    number, violations = decoding.convert_readable(0 if value is None else value, type_, at=at)
    wrong += violations
    return number


def _feature_gate(name: str, file: _ConfigFile, wrong: list[str]) -> bool | None:
    """The gate's value: on unless the file turns it off. None for any value that is not a boolean, null included."""
    value = (file.feature_gates or {}).get(name, True)
    if isinstance(value, bool):
        return value
    wrong.append(f"featureGates.{name}: {decoding.quote_value(value)}: must be true or false")
    return None


def _parse_mode(value: Any, wrong: list[str]) -> ShutdownMode:
    known = [mode.value for mode in ShutdownMode]
    if value is not None and value not in known:
        wrong.append(f"mode: {decoding.quote_value(value)}: must be {' or '.join(known)}")
    return ShutdownMode(value) if value in known else ShutdownMode.ENFORCE


def _watchdog_settings(value: Any, wrong: list[str]) -> WatchdogSettings | None:
    """Parses ``watchdog``; violations of its timing rules name the fields as the file does."""
    if value is None:
        return None
    settings, violations = decoding.convert_readable(value, WatchdogSettings, at="watchdog")
    wrong += violations
    if settings is None or violations:
        return None
    try:
        settings.timing_with()
    except InvalidInput as error:
        violations_by_field = [violation.partition(": ") for violation in error.violations]
        wrong += [
            f"{', '.join(_SETTING[field] for field in fields.split(', '))}: {rule}"
            for fields, _, rule in violations_by_field
        ]
    return settings


def _read_section(file: _ConfigFile, name: str, type_: type[T], wrong: list[str]) -> T | None:
    """A mapping of an AgentConfiguration that has no rules but those of its type; None if absent or wrong."""
    value = getattr(file, _AGENT_FIELDS[name]) if isinstance(file, _AgentFile) else None
    if value is None:
        return None
    settings: T | None
    settings, violations = decoding.convert_readable(value, type_, at=name)
    wrong += violations
    return None if violations else settings


def _phase_groups(periods: GracePeriods) -> tuple[PhasePlan, ...]:
    """Chooses between the two forms as the kubelet does (nodeshutdown_manager.go: newPodManager, migrateConfig)."""
    if not periods.graceful_gate:
        return ()
    if periods.priority_gate and periods.by_priority:
        groups = [PhasePlan(priority=item.priority or 0, seconds=item.seconds or 0) for item in periods.by_priority]
        return tuple(sorted(groups, key=lambda group: group.priority))
    total, critical = periods.total or 0, periods.critical or 0
    if total == 0 or critical > total:
        return ()
    return (
        PhasePlan(priority=0, seconds=(total - critical) // duration.SECOND),
        PhasePlan(priority=SYSTEM_CRITICAL, seconds=critical // duration.SECOND),
    )


def _unknown_fields(document: Mapping[str, Any]) -> list[str]:
    known = ["apiVersion", "kind", *field_names(_AgentFile)]
    found = [*list_unknown_fields(document, known, "")]
    groups = document.get("shutdownGracePeriodByPodPriority")
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        found += list_unknown_fields(group, list(_ITEM), f"{config_rules.LIST}[{index}].")
    watchdog = document.get("watchdog")
    found += list_unknown_fields(watchdog, field_names(WatchdogSettings), "watchdog.")
    peers = watchdog.get("peers") if isinstance(watchdog, dict) else None
    found += list_unknown_fields(peers, field_names(PeerSettings), "watchdog.peers.")
    storage = document.get("storageLease")
    found += list_unknown_fields(storage, field_names(StorageLeaseSettings), "storageLease.")
    sanlock = storage.get("sanlock") if isinstance(storage, dict) else None
    found += list_unknown_fields(document.get("traffic"), field_names(TrafficSettings), "traffic.")
    found += list_unknown_fields(sanlock, field_names(SanlockSettings), "storageLease.sanlock.")
    deadlines = document.get("deadlines")
    found += list_unknown_fields(deadlines, field_names(DeadlineSettings), "deadlines.")
    for name, type_ in _DEADLINE_SOURCES.items():
        source = deadlines.get(name) if isinstance(deadlines, dict) else None
        found += list_unknown_fields(source, field_names(type_), f"deadlines.{name}.")
    found += list_unknown_fields(document.get("featureGates"), [GRACEFUL_GATE, PRIORITY_GATE], "featureGates.")
    return found
