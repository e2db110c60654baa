"""What an EvictionRequest and its Eviction mean to the drain that made the request, as a table."""

import pytest
from support.guard.evictions import EVICTOR, GUARD, condition, eviction, request

from lastcall.guard.eviction_requests.decisions.request_answers import PATIENCE, RequestVerdict, judge_request

WAIT, EVICTED, ASK_API = RequestVerdict.WAIT, RequestVerdict.EVICTED, RequestVerdict.ASK_API


def answered(*conditions):
    return request(status={"conditions": [*conditions]})


AWAITED = answered(condition("Failed", is_true=False), condition("TargetEvicted", is_true=False))
PREPARING = eviction(
    targets=[(GUARD, 10001, "Active"), (EVICTOR, 100, "Inactive")],
    responders=[{"name": GUARD, "message": "moves its jobs (40 % done)"}, {"name": EVICTOR}],
)
REFUSED = eviction(
    targets=[(GUARD, 10001, "Completed"), (EVICTOR, 100, "Active")],
    responders=[{"name": GUARD}, {"name": EVICTOR, "message": "the Eviction API refuses"}],
)
FAILED = eviction(conditions=[condition("Failed", reason="NoFurtherResponder")])
TABLE = {
    "new": (request(), [], 0, WAIT, "controller of EvictionRequests", False),
    "nothing acts on it": (request(), [], PATIENCE, ASK_API, "nothing has acted", False),
    "an Eviction is there already": (request(), [PREPARING], PATIENCE, WAIT, "moves its jobs", True),
    "an Eviction without a turn": (AWAITED, [eviction()], 999, WAIT, "waits for a responder's turn", False),
    "a responder that says nothing": (
        AWAITED,
        [eviction(targets=[(GUARD, 10001, "Active")])],
        999,
        WAIT,
        f"{GUARD} has its turn",
        True,
    ),
    "an application that prepares": (AWAITED, [PREPARING], 999, WAIT, "moves its jobs (40 % done)", True),
    "a budget": (AWAITED, [REFUSED], 999, WAIT, "the Eviction API refuses", False),
    "another pod's": (AWAITED, [eviction(uid="5c0de5ab-0002-4000-8000-000000000001")], 999, WAIT, "controller", False),
    "evicted": (answered(condition("TargetEvicted", reason="PodDeleted")), [], 0, EVICTED, "", False),
    "evicted after a failure": (
        answered(condition("TargetEvicted", reason="PodDeleted"), condition("Failed", reason="NoFurtherResponder")),
        [],
        0,
        EVICTED,
        "",
        False,
    ),
    "a pod that has ended": (
        answered(condition("TargetEvicted", reason="PodTerminal")),
        [],
        0,
        ASK_API,
        "ended",
        False,
    ),
    "of a PodGroup": (answered(condition("Failed", reason="EvictionInvalid")), [], 0, ASK_API, "cannot", False),
    "no responder is left": (
        answered(condition("Failed", reason="NoFurtherResponder")),
        [FAILED],
        0,
        ASK_API,
        "no responder",
        False,
    ),
    "wanted again after a withdrawal": (
        answered(condition("Failed", reason="CanceledDueToNoRequesters")),
        [eviction(conditions=[condition("Failed", reason="CanceledDueToNoRequesters")])],
        PATIENCE,
        WAIT,
        "controller",
        False,
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_answers(name):
    of, evictions, waited, verdict, word, held = TABLE[name]
    answer = judge_request(of, evictions, waited)
    assert (answer.verdict, answer.is_held) == (verdict, held)
    assert word in answer.message
