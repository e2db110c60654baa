"""On which facts an answer rests: an allowance on those that are read now, and on no more of them than matter."""

import json
from weakref import ref

import pytest
from support.guard.reviews import deletion, eviction, facts, held, pod, policy, state

from lastcall.guard.controller import review_service
from lastcall.guard.controller.review_service import ReviewService
from lastcall.model.guard_config import DEFAULTS, GuardConfig
from lastcall_lab import virtual

WEB = pod("web-0", owner="", labels={"app": "web"})
NAMED = pod("web-0", owner="", labels={"app": "web"}, annotations={"lastcall.dev/guard": "missing"})
OWN = policy(name="web", selector={"matchLabels": {"app": "web"}})


class Reader:
    """``GuardFactsReader`` and ``GuardRecords``: what was remembered, and how it is now."""

    def __init__(self, remembered, now):
        self.remembered, self.now, self.read = facts(remembered), facts(now), []
        self.recalled = None
        """What is known without a question."""

    async def read_removal_facts(self, removal, *, fresh):
        self.read.append("all" if fresh else "remembered")
        return self.now if fresh else self.remembered

    def recall_removal_facts(self, removal):
        return self.recalled

    def counts_still(self, removal, facts):
        return facts is self.recalled

    async def read_policies(self, namespace):
        self.read.append("policies")
        return self.now.policies

    def forget(self, namespace):
        self.read.append("forgotten")

    async def change_entry(self, policy, uid, change):
        return change(policy, None)


def answer(review, remembered, now, config=DEFAULTS):
    """The response, and what was read for it."""
    reader = Reader(remembered, now)

    async def main():
        service = ReviewService(reader, reader, virtual.VirtualClock(), config=config)
        return await service.answer(json.dumps(review).encode())

    return virtual.run(main())["response"], reader.read


def test_the_policies_alone_are_read_for_a_pod_that_none_guards():
    said, read = answer(deletion(WEB), state(WEB), state(WEB))
    assert (said["allowed"], said["auditAnnotations"]["reason"]) == (True, "not-guarded")
    assert read == ["remembered", "policies"]


def test_a_policy_that_was_made_a_moment_ago_holds():
    said, read = answer(deletion(WEB), state(WEB), state(WEB, OWN))
    assert not said["allowed"]
    assert read == ["remembered", "policies", "all", "forgotten"]


@pytest.mark.parametrize("review", [eviction("web-0"), deletion(NAMED)], ids=["evicted", "names a missing policy"])
def test_all_is_read_where_the_request_does_not_show_all(review):
    said, read = answer(review, state(WEB), state(WEB))
    assert said["allowed"]
    assert read[-1] == "all"


def test_a_refusal_may_rest_on_what_is_remembered():
    said, read = answer(deletion(), state(), state())
    assert not said["allowed"]
    assert read == ["remembered", "forgotten"], "the request is recorded"


def test_the_releaser_of_the_configuration_is_known_before_anything_is_read():
    user = {"username": "system:serviceaccount:ops:lastcall-guard-releaser"}
    said, read = answer(deletion(user=user), state(), state(), GuardConfig(namespace="ops"))
    assert (said["auditAnnotations"]["reason"], read) == ("releaser", [])
    assert not answer(deletion(user=user), state(), state())[0]["allowed"]


def test_a_namespace_that_is_never_guarded_costs_one_read():
    """The policies that are read alone do not hold its pods either."""
    config = GuardConfig(unguarded_namespaces=("shop",))
    said, read = answer(deletion(WEB), state(WEB), state(WEB, OWN), config)
    assert said["allowed"]
    assert read == ["remembered", "policies"]


def begin(review, recalled, *, is_authenticated=True):
    """The response that is there at once; None if something is waited for."""
    reader = Reader(state(), state())
    reader.recalled = facts(recalled)

    async def main():
        service = ReviewService(reader, reader, virtual.VirtualClock())
        answer = service.begin_answer(json.dumps(review).encode(), is_authenticated=is_authenticated)
        if isinstance(answer, bytes):
            return json.loads(answer)["response"]
        answer.close()
        return None

    return virtual.run(main())


HELD = policy(held("Preparing", lastRequestAt="2999-01-01T00:00:00Z"))


def test_a_refusal_that_needs_no_question_is_there_at_once():
    said = begin(deletion(), state(HELD))
    assert (said["allowed"], said["status"]["code"], said["auditAnnotations"]["reason"]) == (False, 429, "preparing")


def test_an_exemption_that_the_request_shows_is_there_at_once():
    assert begin(deletion(user={"username": "system:node:node-1"}), state())["allowed"]


def test_an_allowance_is_never_there_at_once():
    """What is remembered may be too old for it."""
    assert begin(deletion(WEB), state(WEB)) is None


def test_what_has_to_be_recorded_is_never_there_at_once():
    assert begin(deletion(), state()) is None
    said = begin(deletion(), state(), is_authenticated=False)
    assert not said["allowed"], "who is not known starts nothing"


UIDS = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(9)]


class Repeats:
    """A service that is asked the same, and what it has read, judged and seen of it."""

    def __init__(self, recalled, monkeypatch):
        self.reader = Reader(state(), state())
        self.reader.recalled = facts(recalled)
        self.clock = virtual.VirtualClock()
        self.judged, self.observed = [], []
        judge = review_service.judge_removal

        def spy(removal, facts, now):
            self.judged.append(removal)
            return judge(removal, facts, now)

        monkeypatch.setattr(review_service, "judge_removal", spy)
        self.service = ReviewService(self.reader, self.reader, self.clock, lambda *seen: self.observed.append(seen))

    def ask(self, uid, review=None, *, is_authenticated=True):
        """The answer that is there at once, as text; None if something is waited for."""
        review = deletion() if review is None else review
        review["request"] = {"uid": uid, **{key: value for key, value in review["request"].items() if key != "uid"}}
        answer = self.service.begin_answer(
            json.dumps(review, separators=(",", ":")).encode(), is_authenticated=is_authenticated
        )
        if isinstance(answer, bytes):
            return answer.decode()
        answer.close()
        return None

    def ask_before(self):
        """What is remembered then."""
        self.ask(UIDS[-1])
        self.judged.clear()


def run_in_virtual_time(play):
    async def main():
        play()

    virtual.run(main())


def test_who_asks_the_same_again_is_refused_without_another_judgement(monkeypatch):
    repeats = Repeats(state(HELD), monkeypatch)

    def play():
        first, *others = (repeats.ask(uid) for uid in UIDS)
        for uid, other in zip(UIDS[1:], others, strict=True):
            assert other == first.replace(UIDS[0], uid)
            assert uid in other
        assert len(repeats.judged) == 1
        assert [verdict.reason for _, verdict, _ in repeats.observed] == ["preparing"] * len(UIDS)

    run_in_virtual_time(play)


def test_what_differs_in_more_than_the_uid_is_judged(monkeypatch):
    repeats = Repeats(state(HELD), monkeypatch)

    def play():
        repeats.ask_before()
        assert repeats.ask(UIDS[1], deletion(user={"username": "system:node:node-1"})).count('"allowed":true') == 1
        repeats.ask(UIDS[2], deletion(user={"username": "ben"}))
        assert [one.user.username for one in repeats.judged] == ["ben"]

    run_in_virtual_time(play)


def test_other_facts_are_judged_again(monkeypatch):
    """What is read anew is another object; and then the application may be ready."""
    repeats = Repeats(state(HELD), monkeypatch)

    def play():
        repeats.ask_before()
        repeats.reader.recalled = facts(state(policy(held("Stalled", lastRequestAt="2999-01-01T00:00:00Z"))))
        assert '"reason":"stalled"' in repeats.ask(UIDS[1])
        repeats.reader.recalled = facts(state(policy(held("Ready", verifiedAt="1970-01-01T00:00:00Z"))))
        assert repeats.ask(UIDS[2]) is None, "an allowance is never there at once"

    run_in_virtual_time(play)


def test_a_refusal_does_not_keep_the_facts_of_a_namespace(monkeypatch):
    repeats = Repeats(state(HELD), monkeypatch)

    def play():
        repeats.ask_before()
        old = ref(repeats.reader.recalled)
        repeats.reader.recalled = facts(state(HELD))
        assert old() is None
        assert repeats.ask(UIDS[1])
        assert len(repeats.judged) == 1

    run_in_virtual_time(play)


def test_a_refusal_that_lacks_its_record_is_not_remembered(monkeypatch):
    """Who is not known starts nothing, and takes nothing away from the API server, which asks the same."""
    repeats = Repeats(state(), monkeypatch)

    def play():
        for uid in UIDS[:3]:
            assert repeats.ask(uid, is_authenticated=False)
        assert repeats.ask(UIDS[3]) is None, "its request is recorded"

    run_in_virtual_time(play)
