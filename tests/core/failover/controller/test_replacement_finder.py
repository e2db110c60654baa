"""What takes a lost pod's place is asked for ever more rarely, and read no further than needed."""

from dataclasses import replace

import msgspec
import pytest
from msgspec.structs import replace as changed
from support.failover.cases import PROVED, SWITCHED, marked

from lastcall.errors import Unavailable
from lastcall.failover.controller.replacement_finder import ReplacementFinder
from lastcall.failover.decisions.replacement_backoff import (
    LONGEST,
    MOST,
    NEVER,
    LookupAttempts,
    count_lookups,
    due_lookups,
    next_lookup_at,
)
from lastcall.failover.evidence.lost_pods import LostPod
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.model.observed import FailoverPod
from lastcall_lab.virtual import VirtualClock, run

AT = {"namespace": "shop", "kind": "ReplicaSet", "owner": "rs", "since": "2026-11-21T12:00:00Z", "labels": {"app": "w"}}
WEB, OTHER = LostPod(name="web-1", uid="u1", **AT), LostPod(name="web-2", uid="u2", **AT)
DB = changed(WEB, name="db-0", uid="u3", kind="StatefulSet", owner="sts")


@pytest.mark.parametrize(
    ("times", "pause"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, LONGEST), (7, LONGEST), (10**6, LONGEST)]
)
def test_each_pause_is_twice_as_long_as_the_last_up_to_a_minute(times, pause):
    assert next_lookup_at(LookupAttempts(times=times, last=100.0)) == 100 + pause


def test_who_was_never_asked_for_is_due():
    assert next_lookup_at(NEVER) == float("-inf")
    assert count_lookups([WEB], count_lookups([WEB, DB], {}, 1.0), 2.0) == {
        "u1": LookupAttempts(times=2, last=2.0),
        "u3": LookupAttempts(times=1, last=1.0),
    }


@pytest.mark.parametrize(
    ("missing", "before", "asked"),
    [
        ([WEB, OTHER], {}, [["u1", "u2"]]),
        ([WEB, changed(OTHER, labels={"app": "x"})], {}, [["u1"], ["u2"]]),
        ([WEB, changed(OTHER, namespace="x")], {}, [["u1"], ["u2"]]),
        ([DB, changed(DB, uid="u4", name="db-1"), WEB], {}, [["u3"], ["u4"], ["u1"]]),
        ([WEB, DB], {"u1": LookupAttempts(times=1, last=99.0)}, [["u3"]]),
        ([WEB, OTHER], {"u1": LookupAttempts(times=1, last=99.0)}, [["u1", "u2"]]),
        (
            [WEB, DB],
            {"u1": LookupAttempts(times=1, last=98.0), "u3": LookupAttempts(times=1, last=97.0)},
            [["u3"], ["u1"]],
        ),
        ([changed(DB, uid=str(n), name=str(n)) for n in range(MOST + 1)], {}, [[str(n)] for n in range(MOST)]),
    ],
)
def test_what_is_asked_now(missing, before, asked):
    assert [[one.uid for one in lost] for lost in due_lookups(missing, before, 100.0)] == asked


def pod(name, owner):
    owners = [{"kind": "k", "name": "o", "uid": owner, "controller": True}]
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "creationTimestamp": "2026-11-21T12:00:01Z"}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    found = {"metadata": {**metadata, "ownerReferences": owners}, "spec": {"nodeName": "n9"}, "status": status}
    return msgspec.convert(found, FailoverPod)


class Asking:
    """Counts what is read; ``pages`` of who has the labels."""

    def __init__(self, *pages, fails=False):
        self.named, self.listed, self.read, self.closed = 0, 0, 0, 0
        self.pages, self.fails = pages, fails

    async def read_pod(self, namespace, name):
        self.named += 1
        if self.fails:
            raise Unavailable("no answer")

    async def list_pods_by_labels(self, namespace, labels):
        self.listed += 1
        try:
            for page in self.pages:
                self.read += 1
                yield page
        finally:
            self.closed += 1


def case(*lost):
    return replace(PROVED, pods=(), attachments=(), node=marked(OURS, lost=lost, tainted=True, **SWITCHED))


def looked(cluster, seconds, *lost):
    """Looks every 2 s, as a worker does; what it knows at the end."""
    clock = VirtualClock()

    async def every():
        replacements, end = ReplacementFinder(cluster, clock), clock.boottime() + seconds
        while clock.boottime() < end:
            found = await replacements.find_replacements(case(*lost))
            await clock.sleep(2.0)
        return found

    return run(every())


@pytest.mark.parametrize("fails", [False, True])
def test_a_node_that_is_away_costs_next_to_nothing(fails):
    """6 looks in the first 62 s, and one a minute from then on; one list for all that have the same labels."""
    cluster = Asking([], [], fails=fails)
    found = looked(cluster, 3600, WEB, OTHER, DB)
    assert found == {"shop/web-1": False, "shop/web-2": False, "shop/db-0": False}
    assert 60 <= cluster.named <= 66
    assert 60 <= cluster.listed <= 66


def test_no_look_asks_more_than_a_few_and_all_are_asked_for():
    many = [changed(DB, uid=str(n), name=f"db-{n}") for n in range(25)]
    cluster = Asking()
    looked(cluster, 1, *many)
    assert cluster.named == MOST
    cluster = Asking()
    looked(cluster, 3600, *many)
    assert 25 * 50 <= cluster.named <= 25 * 66


def test_no_page_is_read_that_is_not_needed():
    cluster = Asking([pod("a", "other")], [pod("b", "rs")], [pod("c", "rs")])
    assert looked(cluster, 60, WEB) == {"shop/web-1": True}
    assert (cluster.listed, cluster.read, cluster.closed) == (1, 2, 1)
    cluster = Asking([pod("a", "other")], [pod("b", "rs")], [pod("c", "rs")])
    assert looked(cluster, 60, WEB, OTHER) == {"shop/web-1": True, "shop/web-2": True}
    assert (cluster.listed, cluster.read, cluster.closed) == (1, 3, 1)
