"""One more pod for a time, step by step; each step may be taken by another process."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drain.surges import autoscaler, budget, rolling, workload

from lastcall.drain.unlocking.surge_record import RESTARTED_AT, read_record
from lastcall.drain.unlocking.surge_step import (
    PatchSurge,
    SurgeFacts,
    SurgeOver,
    WaitForSurge,
    list_put_backs,
    next_surge_step,
)
from lastcall.model.surge_facts import Autoscaler
from lastcall.names import DRAIN_SURGE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STRICT = rolling(1, 0)
LOOSE = rolling(1, 1)
FLOOR = budget(minAvailable=1)


def merge(value, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    value = dict(value) if isinstance(value, dict) else {}
    for key, one in patch.items():
        if one is None:
            value.pop(key, None)
        else:
            value[key] = merge(value.get(key), one)
    return value


def patched(subject, patch):
    return msgspec.convert(merge(msgspec.to_builtins(subject), patch), type(subject))


def step(subject, *, scalers=(), gone=False, drain="d1", now=NOW, failed=False):
    return next_surge_step(SurgeFacts(subject, scalers, [FLOOR], drain, is_gone=gone, failed_before=failed), now)


def replaced(subject, **fields):
    return msgspec.structs.replace(
        subject, **{k: msgspec.convert(v, type(getattr(subject, k))) for k, v in fields.items()}
    )


def test_a_restart_is_recorded_waited_for_and_left():
    web = workload(strategy=STRICT)
    first = step(web)
    assert isinstance(first, PatchSurge)
    assert first.patch["metadata"]["resourceVersion"] == "7"
    web = patched(web, first.patch)
    assert web.spec.template.metadata.annotations == {RESTARTED_AT: "2026-01-01T00:00:00Z"}
    assert step(web) == WaitForSurge("Deployment shop/web: 0 of 1 pods are new")
    starting = replaced(web, status={"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1})
    assert step(starting) == WaitForSurge("Deployment shop/web: 1 of 1 pods are new, and not ready yet")
    assert isinstance(step(web, gone=True), WaitForSurge), "its new pod has not been available"
    done = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    last = step(replaced(web, status=done), gone=True)
    assert last.patch == {"metadata": {"resourceVersion": "7", "annotations": {DRAIN_SURGE: None}}}
    assert step(workload(strategy=STRICT), gone=True) == SurgeOver()


@pytest.mark.parametrize(("scalers", "before"), [((), 1), ((autoscaler(5),), 1), ((autoscaler(5, least=0),), 0)])
def test_a_replica_is_added_and_put_back(scalers, before):
    web = workload(strategy=LOOSE)
    first = step(web, scalers=scalers)
    subject = patched(first.subject, first.patch)
    field = "min_replicas" if scalers else "replicas"
    assert getattr(subject.spec, field) == 2
    facts = (subject, ()) if not scalers else (web, (subject,))
    assert isinstance(step(facts[0], scalers=facts[1]), WaitForSurge)
    last = step(facts[0], scalers=facts[1], gone=True)
    subject = patched(last.subject, last.patch)
    assert getattr(subject.spec, field) == before
    assert read_record(subject) is None


def test_what_somebody_has_set_since_stays():
    web = workload(strategy=LOOSE)
    web = patched(web, step(web).patch)
    web = replaced(web, spec={**msgspec.to_builtins(web.spec), "replicas": 5})
    last = step(web, gone=True)
    assert "spec" not in last.patch


@pytest.mark.parametrize("strategy", [STRICT, LOOSE])
def test_a_pod_that_does_not_become_ready_is_put_back_after_ten_minutes(strategy):
    web = workload(strategy=strategy)
    web = patched(web, step(web).patch)
    assert isinstance(step(web, now=NOW + timedelta(minutes=9, seconds=59)), WaitForSurge)
    last = step(web, now=NOW + timedelta(minutes=10))
    assert "within 10 minutes" in last.why
    before = patched(web, last.patch)
    assert (before.spec.replicas, before.spec.template.metadata.annotations or {}) == (1, {})
    over = step(before, failed=True)
    assert isinstance(over, SurgeOver)
    assert over.failure


def test_a_rollout_that_does_not_progress_is_put_back_at_once():
    web = workload(strategy=STRICT, generation=2)
    web = patched(web, step(web).patch)
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "stuck"}
    status = {"observedGeneration": 2, "conditions": [condition]}
    assert "stuck" in step(replaced(web, status=status)).why
    assert isinstance(step(replaced(web, status={**status, "observedGeneration": 1})), WaitForSurge), "of an old spec"


def test_another_drain_is_waited_for():
    web = workload(strategy=LOOSE)
    web = patched(web, step(web, drain="other").patch)
    for gone in (False, True):
        assert isinstance(step(web, gone=gone), WaitForSurge)


def test_what_cannot_surge_says_what_to_do():
    over = step(workload("StatefulSet"))
    assert over.failure
    assert over.mend
    assert step(workload("StatefulSet"), gone=True).failure == ""


def test_a_drain_that_ends_puts_back_at_once_what_is_its_own():
    grown, other = workload(strategy=LOOSE), workload(strategy=STRICT)
    grown, other = (patched(one, step(one).patch) for one in (grown, other))
    scaled = patched(autoscaler(5), step(workload(strategy=LOOSE), scalers=[autoscaler(5)]).patch)
    found = list_put_backs([grown, other, scaled, workload()], "d1")
    after = [patched(one.subject, one.patch) for one in found]
    assert [read_record(one) for one in after] == [None] * 3
    assert (after[0].spec.replicas, after[2].spec.min_replicas) == (1, 1)
    assert RESTARTED_AT in after[1].spec.template.metadata.annotations, "a restart is complete in itself"
    assert list_put_backs([grown, other, scaled], "d2") == []


def test_a_record_that_cannot_be_read_is_none():
    assert read_record(workload(annotations={DRAIN_SURGE: "{"})) is None


@given(
    st.lists(st.sampled_from(["step", "evict", "crash", "time", "scale"]), max_size=12),
    st.sampled_from([STRICT, LOOSE]),
    st.booleans(),
)
def test_in_the_end_the_workload_is_as_before(events, strategy, scaled):
    """Whatever happens in whatever order, and whoever takes the last steps."""
    subjects = [workload(strategy=strategy), *([autoscaler(2)] if scaled else [])]
    gone, now, done = False, NOW, ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]

    def take():
        found = step(subjects[0], scalers=subjects[1:], gone=gone, now=now)
        if isinstance(found, PatchSurge):
            at = 1 if isinstance(found.subject, Autoscaler) else 0
            subjects[at] = patched(found.subject, found.patch)
        return found

    for event in events:
        if event == "step":
            take()
        elif event == "evict":
            gone = True
        elif event == "crash":
            for orphan in list_put_backs(subjects, "d1"):
                at = 1 if isinstance(orphan.subject, Autoscaler) else 0
                subjects[at] = patched(orphan.subject, orphan.patch)
        elif event == "scale" and scaled:
            least = max(subjects[0].spec.replicas, subjects[1].spec.min_replicas)
            subjects[0] = patched(subjects[0], {"spec": {"replicas": least}})
        now += timedelta(minutes=4 if event == "time" else 0)
    gone, done = True, dict.fromkeys(done, subjects[0].spec.replicas)
    subjects[0] = replaced(subjects[0], status=done)
    while not isinstance(take(), SurgeOver):
        pass
    assert scaled or subjects[0].spec.replicas == 1
    assert all(read_record(one) is None for one in subjects)
    assert all(one.spec.min_replicas == 1 for one in subjects[1:])
