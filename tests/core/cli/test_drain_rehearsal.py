"""``lastcall drain --dry-run=server``: which answers are a failure."""

import asyncio

import pytest
from support.drain.objects import owned_object
from support.drain.plans import case_of

from lastcall import errors
from lastcall.cli.drain_rehearsal import rehearse_drain
from lastcall.drain.planning.drain_plan import build_plan

ABSENT = errors.NotFound('pods "p" not found', code=404, details={"kind": "pods", "name": "p"})
REPLACED = errors.Conflict("Precondition failed: UID in precondition: a, UID in object meta: b", code=409)
SPENT = errors.TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", code=429)


class Client:
    """Answers each eviction and deletion in the same way, and keeps what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    async def patch(self, *_args, dry_run, **_more):
        assert dry_run

    async def evict(self, name, *, dry_run, **_more):
        self.ask("evict", name, dry_run)

    async def delete(self, _resource, name, *, dry_run, **_more):
        self.ask("delete", name, dry_run)

    def ask(self, verb, name, dry_run):
        assert dry_run
        self.asked.append((verb, name))
        if self.answer:
            raise self.answer


@pytest.mark.parametrize(("answer", "code"), [(None, 0), (ABSENT, 0), (REPLACED, 0), (SPENT, 1)])
@pytest.mark.parametrize("verb", ["evict", "delete"])
def test_the_answers_of_the_server(capsys, verb, answer, code):
    case, client = case_of(owned_object(), disable_eviction=verb == "delete"), Client(answer)
    assert asyncio.run(rehearse_drain(client, case, build_plan(case), "server")) == code
    assert client.asked == [(verb, "p")]
    said = capsys.readouterr()
    assert ("node/n1 drained (server dry run)" in said.out) is (code == 0)
    assert ("would violate" in said.err) is (code == 1)


def test_the_server_is_not_asked_without_need():
    case, client = case_of(owned_object()), Client(SPENT)
    assert asyncio.run(rehearse_drain(client, case, build_plan(case), "client")) == 0
    assert client.asked == []
