"""Which pods of a node a drain evicts, passes over or refuses (pure).

The filters, their order and their words are those of ``kubectl drain`` (kubectl/pkg/drain/filters.go), after Cluster API's
label for pods that stay.
"""

from collections.abc import Callable, Collection
from datetime import datetime
from enum import Enum
from typing import NamedTuple

import msgspec

from lastcall.model.drain_facts import PodName
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.pods import OwnerReference, Pod
from lastcall.names import CLUSTER_API_DRAIN, MIRROR_ANNOTATION

FORCE = "--force"
IGNORE_DAEMONSETS = "--ignore-daemonsets"
DELETE_EMPTYDIR_DATA = "--delete-emptydir-data"

DAEMON_SET_FATAL = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
DAEMON_SET_WARNING = "ignoring DaemonSet-managed Pods"
LOCAL_STORAGE_FATAL = "Pods with local storage (use --delete-emptydir-data to override)"
LOCAL_STORAGE_WARNING = "deleting Pods with local storage"
UNMANAGED_FATAL = "cannot delete Pods that declare no controller (use --force to override)"
UNMANAGED_WARNING = "deleting Pods that declare no controller"
MIRROR_SKIPPED = "ignoring mirror Pods, which cannot be deleted through the API server"


class FilterFate(Enum):
    """What a drain does with a pod."""

    EVICT = "evict"
    SKIP = "skip"
    """The pod stays, and the drain is over without its end."""
    REFUSE = "refuse"
    """The drain does not begin while there is such a pod."""


class FilterVerdict(NamedTuple):
    """The fate of one pod. ``why`` is kubectl's text: of an evicted pod its warning, "" if there is none.

    ``mend`` is the option with which a refused pod would not be refused for this reason.
    """

    fate: FilterFate
    why: str = ""
    mend: str = ""


_EVICT = FilterVerdict(FilterFate.EVICT)


class FilterFacts(NamedTuple):
    """What the filters need beside the pod. ``daemon_sets`` are the namespaces and names of those that exist.

    ``daemon_sets`` None: they are not known, and count as existing.
    """

    settings: DrainSettings
    now: datetime
    daemon_sets: Collection[PodName] | None = None


def filter_pod(pod: Pod, facts: FilterFacts) -> FilterVerdict:
    """What a drain does with the pod: the first filter that does not evict it decides, else the last warning counts."""
    verdict = _EVICT
    for one in _FILTERS:
        found = one(pod, facts)
        if found is None:
            continue
        if found.fate is not FilterFate.EVICT:
            return found
        verdict = found
    return verdict


def list_mends(pod: Pod, facts: FilterFacts) -> tuple[str, ...]:
    """All options that the pod needs so that it is evicted, in the order of the filters; none if it is not refused.

    () also for a pod that no option would evict.
    """
    mends: list[str] = []
    settings = facts.settings
    while (verdict := filter_pod(pod, facts._replace(settings=settings))).fate is FilterFate.REFUSE:
        if verdict.mend == IGNORE_DAEMONSETS:
            return ()
        mends.append(verdict.mend)
        settings = _with_mend(settings, verdict.mend)
    return tuple(mends) if verdict.fate is FilterFate.EVICT else ()


def controller_of(pod: Pod) -> OwnerReference | None:
    """The owner that controls the pod (``metav1.GetControllerOf``)."""
    return next((owner for owner in pod.metadata.owner_references or () if owner.controller), None)


def is_of_daemon_set(pod: Pod) -> bool:
    """Whether a DaemonSet of apps/v1 controls the pod (``isControllerRefDaemonSet``)."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == "DaemonSet" and owner.api_version == "apps/v1"


def _with_mend(settings: DrainSettings, mend: str) -> DrainSettings:
    if mend == FORCE:
        return msgspec.structs.replace(settings, force=True)
    return msgspec.structs.replace(settings, delete_emptydir_data=True)


def _skip_long_deleted(pod: Pod, facts: FilterFacts) -> FilterVerdict | None:
    limit = facts.settings.skip_wait_for_delete_timeout
    if limit <= 0 or pod.metadata.deletion_timestamp is None:
        return None
    try:
        since = msgspec.convert(pod.metadata.deletion_timestamp, datetime)
    except msgspec.ValidationError:
        return None
    if since.tzinfo is None or int((facts.now - since).total_seconds()) <= limit:
        return None
    name = pod.metadata.name
    return FilterVerdict(FilterFate.SKIP, f'pod "{name}" has DeletionTimestamp older than {limit} seconds, skipping')


def _skip_by_label(pod: Pod, _facts: FilterFacts) -> FilterVerdict | None:
    """Cluster API compares the value without regard to case (drainLabelFilter)."""
    value = (pod.metadata.labels or {}).get(CLUSTER_API_DRAIN, "")
    if value.lower() != "skip":
        return None
    return FilterVerdict(FilterFate.SKIP, f"label {CLUSTER_API_DRAIN}: {value}, of Cluster API, leaves it on its node")


def _judge_daemon_set(pod: Pod, facts: FilterFacts) -> FilterVerdict | None:
    if pod.is_finished or not is_of_daemon_set(pod):
        return None
    owner = controller_of(pod)
    assert owner is not None
    if facts.daemon_sets is not None and (pod.metadata.namespace, owner.name) not in facts.daemon_sets:
        why = f'daemonsets.apps "{owner.name}" not found'
        return FilterVerdict(FilterFate.EVICT, why) if facts.settings.force else _refuse(why, FORCE)
    if not facts.settings.ignore_daemonsets:
        return _refuse(DAEMON_SET_FATAL, IGNORE_DAEMONSETS)
    return FilterVerdict(FilterFate.SKIP, DAEMON_SET_WARNING)


def _skip_mirror(pod: Pod, _facts: FilterFacts) -> FilterVerdict | None:
    is_mirror = MIRROR_ANNOTATION in (pod.metadata.annotations or {})
    return FilterVerdict(FilterFate.SKIP, MIRROR_SKIPPED) if is_mirror else None


def _judge_local_storage(pod: Pod, facts: FilterFacts) -> FilterVerdict | None:
    if pod.is_finished or not any(volume.empty_dir is not None for volume in pod.spec.volumes or ()):
        return None
    if not facts.settings.delete_emptydir_data:
        return _refuse(LOCAL_STORAGE_FATAL, DELETE_EMPTYDIR_DATA)
    return FilterVerdict(FilterFate.EVICT, LOCAL_STORAGE_WARNING)


def _judge_unmanaged(pod: Pod, facts: FilterFacts) -> FilterVerdict | None:
    """As in kubectl, it takes back the warning of an earlier filter if it has none itself."""
    if pod.is_finished or controller_of(pod) is not None:
        return _EVICT
    return (
        FilterVerdict(FilterFate.EVICT, UNMANAGED_WARNING) if facts.settings.force else _refuse(UNMANAGED_FATAL, FORCE)
    )


def _refuse(why: str, mend: str) -> FilterVerdict:
    return FilterVerdict(FilterFate.REFUSE, why, mend)


_FILTERS: tuple[Callable[[Pod, FilterFacts], FilterVerdict | None], ...] = (
    _skip_long_deleted,
    _skip_by_label,
    _judge_daemon_set,
    _skip_mirror,
    _judge_local_storage,
    _judge_unmanaged,
)
