"""Which pods a drain evicts, passes over or refuses: kubectl's filters, in its order and words."""

from datetime import UTC, datetime

import pytest
from support.drain.objects import DAEMON_SET, bare, daemon, owned

from lastcall.drain.planning.pod_filters import FilterFacts, FilterFate, filter_pod, list_mends
from lastcall.model.drain_settings import DrainSettings

EVICT, SKIP, REFUSE = FilterFate.EVICT, FilterFate.SKIP, FilterFate.REFUSE
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
LATE = "2026-01-01T11:59:29Z"  # 31 seconds ago

DS_FATAL = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
DS_WARNING = "ignoring DaemonSet-managed Pods"
LOCAL_FATAL = "Pods with local storage (use --delete-emptydir-data to override)"
BARE_FATAL = "cannot delete Pods that declare no controller (use --force to override)"
BARE_WARNING = "deleting Pods that declare no controller"
GONE = 'daemonsets.apps "gone" not found'
LATE_TEXT = 'pod "p" has DeletionTimestamp older than 30 seconds, skipping'

EMPTY_DIR = [{"name": "cache", "emptyDir": {}}]
MIRROR = {"kubernetes.io/config.mirror": "abc"}


def verdict(pod, daemon_sets=(DAEMON_SET,), **settings):
    facts = FilterFacts(DrainSettings(**settings), NOW, None if daemon_sets is None else set(daemon_sets))
    return tuple(filter_pod(pod, facts))


CASES = {
    "owned": (owned(), {}, (EVICT, "", "")),
    "owned by something that is no workload": (owned(kind="Rollout", version="argoproj.io/v1"), {}, (EVICT, "", "")),
    "daemon set": (daemon(), {}, (REFUSE, DS_FATAL, "--ignore-daemonsets")),
    "daemon set, ignored": (daemon(), {"ignore_daemonsets": True}, (SKIP, DS_WARNING, "")),
    "daemon set, force does not help": (daemon(), {"force": True}, (REFUSE, DS_FATAL, "--ignore-daemonsets")),
    "daemon set, ignored, with emptyDir": (
        daemon(volumes=EMPTY_DIR),
        {"ignore_daemonsets": True},
        (SKIP, DS_WARNING, ""),
    ),
    "daemon set that is finished": (daemon(phase="Failed"), {}, (EVICT, "", "")),
    "daemon set of another group": (daemon(version="apps.kruise.io/v1"), {}, (EVICT, "", "")),
    "orphan": (daemon("gone"), {}, (REFUSE, GONE, "--force")),
    "orphan, ignored": (daemon("gone"), {"ignore_daemonsets": True}, (REFUSE, GONE, "--force")),
    "orphan, forced, loses its warning": (daemon("gone"), {"force": True}, (EVICT, "", "")),
    "mirror": (
        bare(annotations=MIRROR),
        {},
        (SKIP, "ignoring mirror Pods, which cannot be deleted through the API server", ""),
    ),
    "local storage": (owned(volumes=EMPTY_DIR), {}, (REFUSE, LOCAL_FATAL, "--delete-emptydir-data")),
    "local storage in memory": (
        owned(volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}]),
        {},
        (REFUSE, LOCAL_FATAL, "--delete-emptydir-data"),
    ),
    "host path is no local storage": (owned(volumes=[{"name": "h", "hostPath": {"path": "/x"}}]), {}, (EVICT, "", "")),
    "local storage, deleted": (owned(volumes=EMPTY_DIR), {"delete_emptydir_data": True}, (EVICT, "", "")),
    "local storage, finished": (owned(volumes=EMPTY_DIR, phase="Succeeded"), {}, (EVICT, "", "")),
    "bare": (bare(), {}, (REFUSE, BARE_FATAL, "--force")),
    "bare, forced": (bare(), {"force": True}, (EVICT, BARE_WARNING, "")),
    "bare, finished": (bare(phase="Succeeded"), {}, (EVICT, "", "")),
    "an owner that is no controller": (owned(controller=False), {}, (REFUSE, BARE_FATAL, "--force")),
    "bare with local storage": (bare(volumes=EMPTY_DIR), {}, (REFUSE, LOCAL_FATAL, "--delete-emptydir-data")),
    "bare with local storage, forced": (
        bare(volumes=EMPTY_DIR),
        {"force": True},
        (REFUSE, LOCAL_FATAL, "--delete-emptydir-data"),
    ),
    "bare with local storage, deleted": (
        bare(volumes=EMPTY_DIR),
        {"delete_emptydir_data": True},
        (REFUSE, BARE_FATAL, "--force"),
    ),
    "bare with local storage, both": (
        bare(volumes=EMPTY_DIR),
        {"delete_emptydir_data": True, "force": True},
        (EVICT, BARE_WARNING, ""),
    ),
    "terminating": (owned(deletion=LATE), {}, (EVICT, "", "")),
    "terminating for long": (bare(deletion=LATE), {"skip_wait_for_delete_timeout": 30}, (SKIP, LATE_TEXT, "")),
    "terminating for exactly so long": (owned(deletion=LATE), {"skip_wait_for_delete_timeout": 31}, (EVICT, "", "")),
    "terminating for longer than the shortest limit": (
        owned(deletion=LATE),
        {"skip_wait_for_delete_timeout": 1},
        (SKIP, LATE_TEXT.replace("30", "1"), ""),
    ),
    "daemon set, terminating for long": (
        daemon(deletion=LATE),
        {"skip_wait_for_delete_timeout": 30},
        (SKIP, LATE_TEXT, ""),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_fate_of_a_pod(name):
    pod, settings, expected = CASES[name]
    assert verdict(pod, **settings) == expected


@pytest.mark.parametrize("value", ["skip", "Skip", "SKIP"])
@pytest.mark.parametrize("make", [owned, bare, daemon])
def test_cluster_apis_label_leaves_a_pod_on_its_node(value, make):
    found = verdict(make(labels={"cluster.x-k8s.io/drain": value}))
    assert found == (SKIP, f"label cluster.x-k8s.io/drain: {value}, of Cluster API, leaves it on its node", "")


@pytest.mark.parametrize("value", ["", "skipped", "no", "wait-completed"])
def test_other_values_of_that_label_do_not(value):
    assert verdict(owned(labels={"cluster.x-k8s.io/drain": value}))[0] is EVICT


def test_daemon_sets_that_are_not_known_exist():
    assert verdict(daemon("gone"), daemon_sets=None)[1] == DS_FATAL


@pytest.mark.parametrize(
    ("pod", "mends"),
    [
        (owned(), ()),
        (daemon(), ()),
        (daemon("gone"), ("--force",)),
        (daemon("gone", volumes=EMPTY_DIR), ("--force", "--delete-emptydir-data")),
        (bare(), ("--force",)),
        (bare(volumes=EMPTY_DIR), ("--delete-emptydir-data", "--force")),
        (owned(volumes=EMPTY_DIR), ("--delete-emptydir-data",)),
        (bare(annotations=MIRROR), ()),
    ],
)
def test_the_options_that_a_pod_needs(pod, mends):
    assert list_mends(pod, FilterFacts(DrainSettings(), NOW, {DAEMON_SET})) == mends
