"""The doctor's checks of the kubelet beside the agent, as far as this host shows them (pure)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from lastcall.doctor.facts import HostFacts, HostFile, KubeletFacts, UnknownFact
from lastcall.doctor.finding import Finding, failure, ok, unknown, warning
from lastcall.doctor.logind_checks import SILENT, find_lock
from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.model import decoding, duration
from lastcall.model.base import Facts
from lastcall.model.pods import SYSTEM_CLASSES
from lastcall.names import KUBELET_LOCK_WHO, LOCK_WHO

_NEVER = datetime(1, 1, 1, tzinfo=UTC)
"""Go's zero time."""

_NO_PERIODS = (
    "take shutdownGracePeriod, shutdownGracePeriodCriticalPods and shutdownGracePeriodByPodPriority out of its"
    " configuration and restart it; give them to lastcall in an AgentConfiguration"
)


class _KubeletState(Facts, frozen=True):
    """graceful_node_shutdown_state (pkg/kubelet/nodeshutdown/storage.go)."""

    start_time: datetime = _NEVER
    end_time: datetime = _NEVER


def check_kubelet(facts: HostFacts) -> Finding:
    """Whether the kubelet ends pods too, or is configured to but never armed."""
    if isinstance(facts.logind, UnknownFact):
        return unknown(SILENT)
    lock, ours = find_lock(KUBELET_LOCK_WHO, facts.logind), find_lock(LOCK_WHO, facts.logind)
    if lock and ours:
        return failure(
            f"the kubelet (pid {lock.pid}) holds a delay lock beside lastcall: both would end the pods, each in its own order",
            _NO_PERIODS,
        )
    if lock:
        return warning(
            f"the kubelet (pid {lock.pid}) holds a delay lock: it ends the pods itself, also beside an agent",
            _NO_PERIODS,
        )
    if facts.kubelet is None:
        return ok("no kubelet runs here")
    if isinstance(facts.kubelet, UnknownFact):
        return unknown(f"whether one runs is not known: {facts.kubelet.reason}")
    return _judge_without_lock(facts.kubelet, preparing=facts.logind.preparing, ours=bool(ours))


def check_kubelet_state(facts: HostFacts) -> Finding:
    """Whether the kubelet is still in a shutdown that did not take place.

    The kubelet keeps that state in memory only: a kubelet that has restarted since has left it.
    """
    if not isinstance(facts.kubelet, KubeletFacts):
        return ok("no kubelet runs here") if facts.kubelet is None else unknown(f"not known: {facts.kubelet.reason}")
    if isinstance(facts.kubelet.state, UnknownFact):
        return unknown(f"not known: {facts.kubelet.state.reason}")
    if facts.kubelet.state is None:
        return ok("the kubelet has seen no shutdown")
    try:
        state = msgspec.json.decode(facts.kubelet.state.data, type=_KubeletState)
    except msgspec.DecodeError as error:
        return unknown(f"{facts.kubelet.state.path} cannot be read: {error}")
    return _judge_state(state, facts.kubelet, facts)


def check_static_pods(facts: HostFacts) -> Finding:
    """Whether the kubelet treats a critical static pod as an ordinary one (kubernetes issue 113940)."""
    if isinstance(facts.manifests, UnknownFact):
        return unknown(f"not known: {facts.manifests.reason}")
    found = [file.path for file in facts.manifests if any(_is_misjudged(pod) for pod in _pod_specs(file))]
    if not found:
        number = len(facts.manifests)
        return ok(f"the kubelet judges all {number} manifests right" if number else "there are no static pods")
    numbers = ", ".join(f"{number} for {name}" for name, number in SYSTEM_CLASSES.items())
    return warning(
        f"a critical class, but no number: the kubelet would end them first (lastcall would not): {', '.join(found)}",
        f"set spec.priority there: {numbers}",
    )


def _judge_without_lock(kubelet: KubeletFacts, *, preparing: bool, ours: bool) -> Finding:
    who = f"the kubelet (pid {kubelet.pid})"
    if isinstance(kubelet.config, UnknownFact):
        return unknown(f"{who} holds no lock; its configuration cannot be read: {kubelet.config.reason}")
    try:
        asked = _merge_config(kubelet.config).requested_seconds if kubelet.config else 0
    except InvalidInput as error:
        return unknown(f"{who} holds no lock; its configuration: {'; '.join(str(error).splitlines())}")
    if not asked:
        return ok(f"{who} is not configured for graceful shutdown")
    asks = f"{who} asks for {duration.format_duration(asked * duration.SECOND)}"
    if preparing:
        return unknown(f"{asks}; during a shutdown whether it was armed is not known")
    if ours:
        return warning(f"{asks} and is not armed now, but may be after its next start, beside lastcall", _NO_PERIODS)
    return failure(
        f"{asks} and holds no delay lock: it never armed, and a shutdown cuts its pods off",
        "run the lastcall agent, or raise InhibitDelayMaxSec and restart the kubelet",
    )


def _judge_state(state: _KubeletState, kubelet: KubeletFacts, facts: HostFacts) -> Finding:
    began, ended = state.start_time.timestamp(), state.end_time.timestamp()
    if state.start_time <= _NEVER or kubelet.started > began:
        return ok(f"the kubelet (pid {kubelet.pid}) has started since its last shutdown, if there was one")
    if isinstance(facts.logind, UnknownFact):
        return unknown(SILENT)
    if facts.logind.preparing:
        return ok("a shutdown is under way")
    if ended >= began and find_lock(KUBELET_LOCK_WHO, facts.logind):
        return ok("the kubelet has recovered from a cancelled shutdown")
    return failure(
        f"the kubelet (pid {kubelet.pid}) is still in the shutdown of {state.start_time.isoformat(timespec='seconds')}, "
        "which is over: it stays NotReady and refuses pods",
        "systemctl restart kubelet",
    )


def _merge_config(files: Sequence[HostFile]) -> config.AgentConfig:
    """The file of --config, overridden by those of --config-dir: fields are replaced, feature gates are merged."""
    merged: dict[str, Any] = {}
    for file in files:
        for document in decoding.parse_documents(file.data, file.path):
            if not isinstance(document, dict):
                raise InvalidInput(file.path, [f"document: {decoding.quote_value(document)}: must be a mapping"])
            gates = {**(merged.get("featureGates") or {}), **(document.get("featureGates") or {})}
            merged |= {**document, "featureGates": gates}
    return config.parse_config(msgspec.json.encode(merged), files[0].path)


def _pod_specs(file: HostFile) -> Iterator[dict[str, Any]]:
    """The specs in a manifest; the kubelet, too, ignores an unreadable file."""
    try:
        documents = decoding.parse_documents(file.data, file.path)
    except InvalidInput:
        return
    for document in documents:
        spec = document.get("spec") if isinstance(document, dict) else None
        if isinstance(spec, dict):
            yield spec


def _is_misjudged(spec: dict[str, Any]) -> bool:
    return spec.get("priorityClassName") in SYSTEM_CLASSES and spec.get("priority") is None
