"""What each answer of an API server means for a pod: the table of the research, row by row."""

import pytest

from lastcall import errors
from lastcall.drain.decisions.eviction_answers import read_answer
from lastcall.drain.decisions.pod_progress import AnswerKind
from lastcall.model.budgets import NEGATIVE, SEVERAL, UNCONFIRMED, VIOLATED
from lastcall.ports.drain import EvictionHeld

TERMINATING = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
NEEDS = {
    "causes": [
        {"reason": "DisruptionBudget", "message": "The disruption budget web needs 5 healthy pods and has 5 currently"}
    ]
}
HELD = 'admission webhook "evict.guard.lastcall.dev" denied the request: held'
RECORD = "the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted"
STORED = "Precondition failed: UID in precondition: a, UID in object meta: b"


def behind(why):
    """kube-apiserver's answer while the disruption controller is behind (eviction.go, ``checkAndDecrement``)."""
    return errors.ApiNotPermitted(f'poddisruptionbudget.policy "web" is forbidden: {why}', code=403)


def absent(kind):
    """kube-apiserver's answer if an object that it needs does not exist."""
    return errors.NotFound(f'{kind} "x" not found', code=404, details={"kind": kind, "name": "x"})


TABLE = {
    "success": (None, AnswerKind.ACCEPTED),
    "gone": (absent("pods"), AnswerKind.GONE),
    "its namespace is gone": (absent("namespaces"), AnswerKind.GONE),
    "its budget was deleted meanwhile": (absent("poddisruptionbudgets"), AnswerKind.REFUSED),
    "its EvictionRequest was deleted meanwhile": (errors.NotFound("deleted by another client"), AnswerKind.REFUSED),
    "a webhook that says not found": (
        errors.NotFound(HELD, code=404, details={"kind": "pods"}),
        AnswerKind.FAILED,
    ),
    "another pod of its name": (errors.Conflict(RECORD, code=409), AnswerKind.GONE),
    "the same, from the storage": (errors.Conflict(STORED, code=409), AnswerKind.GONE),
    "changed meanwhile": (errors.Conflict("the object has been modified", code=409), AnswerKind.REFUSED),
    "a budget": (errors.TooManyRequests(VIOLATED, code=429, details=NEEDS), AnswerKind.REFUSED),
    "a guard": (errors.TooManyRequests(HELD, code=429), AnswerKind.REFUSED),
    "a responder": (EvictionHeld("its responder has its turn"), AnswerKind.REFUSED),
    "a webhook that says no": (errors.RequestRefused(HELD, code=400), AnswerKind.FAILED),
    "a webhook that is away": (
        errors.ApiUnavailable('failed calling webhook "x": EOF', code=500),
        AnswerKind.REFUSED,
    ),
    "several budgets": (errors.ApiUnavailable(SEVERAL, code=500), AnswerKind.FAILED),
    "a namespace that is deleted": (
        errors.ApiNotPermitted("forbidden", code=403, details=TERMINATING),
        AnswerKind.REFUSED,
    ),
    "a webhook that says no with 500": (errors.ApiUnavailable(HELD, code=500), AnswerKind.REFUSED),
    "a budget that allows less than nothing": (behind(NEGATIVE), AnswerKind.REFUSED),
    "a budget whose controller has not seen 2,000 evictions": (behind(UNCONFIRMED), AnswerKind.REFUSED),
    "a budget that others write at the same time": (
        errors.ApiUnavailable("Timeout: couldn't update PodDisruptionBudget due to conflicts", code=504),
        AnswerKind.REFUSED,
    ),
    "no right": (errors.ApiNotPermitted("pods/eviction is forbidden", code=403), AnswerKind.FAILED),
    "no server": (errors.NotConnected("refused"), AnswerKind.REFUSED),
    "an overloaded server": (errors.ApiUnavailable("overloaded", code=503), AnswerKind.REFUSED),
}


@pytest.mark.parametrize("name", TABLE)
def test_answers(name):
    error, kind = TABLE[name]
    assert read_answer(error).kind is kind


@pytest.mark.parametrize("name", TABLE)
def test_with_an_end_only_the_denials_of_webhooks_are_read_otherwise(name):
    error, kind = TABLE[name]
    denied = name in ("a webhook that says no", "a webhook that says not found")
    answer = read_answer(error, has_end=True)
    assert answer.kind is (AnswerKind.REFUSED if denied else kind)
    if denied:
        assert answer.is_held, "no policy passes it by at the end of the time"


def test_what_a_budget_needs_is_in_its_causes():
    said = read_answer(TABLE["a budget"][0]).message
    assert said == f"{VIOLATED} The disruption budget web needs 5 healthy pods and has 5 currently"


@pytest.mark.parametrize(
    ("kind", "code"), [(errors.TooManyRequests, 429), (errors.ApiUnavailable, 503), (errors.ApiUnavailable, 504)]
)
def test_a_time_that_the_server_asks_for(kind, code):
    asked = kind("stale", code=code, details={"retryAfterSeconds": 10})
    assert read_answer(asked).retry_after == 10.0
    assert read_answer(TABLE["a budget"][0]).retry_after is None


@pytest.mark.parametrize(
    ("name", "held"), [("a guard", True), ("a responder", True), ("a webhook that is away", True), ("a budget", False)]
)
def test_whether_a_webhook_holds(name, held):
    assert read_answer(TABLE[name][0]).is_held is held
