"""Any order of events: what the controller and the evictor write is what Kubernetes accepts, and what they do happens once.

The API server's own rules judge each write (the lab's, which are held against upstream's).
"""

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.guard.evictions import EVICTOR, NOW, eviction, pod, request, text

from lastcall.guard.eviction_requests.decisions.eviction_outcomes import decide_eviction
from lastcall.guard.eviction_requests.decisions.heartbeats import report_progress
from lastcall.guard.eviction_requests.decisions.imperative_evictor import (
    EvictionAttempts,
    count_refusal,
    decide_evictor,
)
from lastcall.guard.eviction_requests.decisions.responder_turns import HEARTBEAT_SECONDS
from lastcall.model.eviction_requests import ENDED, EvictionIntent, PodEviction, ResponderState
from lastcall_lab.apiserver.kinds.eviction_requests import EvictionKind

FIRST, SECOND = "a.example/first", "b.example/second"

_WAIT = st.tuples(st.just("wait"), st.sampled_from([1, 30, 170, 800, 1190, 1300]))
_REPORT = st.tuples(st.sampled_from(["beat", "complete"]), st.sampled_from([FIRST, SECOND]))
_OTHER = st.one_of(
    st.tuples(st.just("intent"), st.tuples(st.sampled_from([0, 1]), st.sampled_from([*EvictionIntent]))),
    st.tuples(st.just("budget"), st.booleans()),
    st.tuples(st.sampled_from(["finish", "remove"]), st.none()),
)
EVENTS = st.lists(st.tuples(st.one_of(_WAIT, _REPORT, _OTHER), st.booleans()), min_size=1, max_size=30)
"""Each with whether the guard has a look after it."""


class Cluster:
    """One pod, two requests, one Eviction as it is stored, and the books of what was done."""

    def __init__(self, responders):
        self.now = NOW
        self.pod = pod(responders=responders)
        self.requests = [request("one"), request("two", requester="c.example/two", intent="Withdrawn")]
        self.stored = {"status": {}}
        self.refuses = False
        self.gone_at = None
        self.attempts = EvictionAttempts()
        self.evicted = 0

    # -- the API server ------------------------------------------------------------------------------------------------

    @property
    def eviction(self):
        found = eviction(requesters=())
        return replace(found, status=msgspec.convert(self.stored["status"], type(found.status)))

    def write(self, **status):
        """Merges the lists by their keys, as a strategic merge patch does, and has it judged."""
        after = {**self.stored["status"]}
        for name, value in status.items():
            after[name] = _merge(after.get(name, []), value) if isinstance(value, list) else value
        causes = [*EvictionKind(self.now.timestamp).validate_status({"status": after}, self.stored)]
        assert causes == [], causes
        self.stored = {"status": after}

    # -- what happens --------------------------------------------------------------------------------------------------

    def play(self, events, *, without=()):
        self.round()
        for (event, value), has_round in events:
            if event not in without:
                getattr(self, event)(value)
            if has_round:
                self.round()

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)

    def beat(self, name):
        self.report(name, message=f"at {self.now}")

    def complete(self, name):
        self.report(name, message="done", is_complete=True)

    def report(self, name, **how):
        own, said = self.eviction.find_responder(name), self.eviction.find_progress(name)
        if own is None or own.state is not ResponderState.ACTIVE:
            return
        if progress := report_progress(said, self.now, **how):
            self.write(responders=[_plain(progress)])

    def intent(self, which):
        number, intent = which
        spec = replace(self.requests[number].spec, intent=intent)
        self.requests[number] = replace(self.requests[number], spec=spec)

    def budget(self, refuses):
        self.refuses = refuses

    def finish(self, _):
        if self.pod:
            self.pod = replace(self.pod, status=replace(self.pod.status, phase="Succeeded"))

    def remove(self, _):
        self.pod = None

    def round(self):
        self.control()
        self.run_evictor()
        self.control()

    def control(self):
        before = self.eviction
        if self.gone_at is None and (self.pod is None or self.pod.is_terminal):
            self.gone_at = self.now
        outcome = decide_eviction(before, self.requests, self.pod, self.now, gone_at=self.gone_at)
        if before.is_over:
            assert outcome.status is None
        if outcome.status is None:
            return
        said = _plain(outcome.status)
        said["responders"] = [
            {key: one[key] for key in ("name", "startTime") if key in one} for one in said["responders"]
        ]
        self.write(**said)
        again = decide_eviction(self.eviction, self.requests, self.pod, self.now, gone_at=self.gone_at)
        assert again.status is None or _has_moved_on(before, self.eviction), "the same is written again and again"

    def run_evictor(self):
        before = self.eviction
        turn = decide_evictor(before, self.pod, self.attempts, self.now)
        if turn.progress is not None:
            self.write(responders=[_plain(turn.progress)])
        if not turn.is_evicting:
            return
        self.check_turn(before)
        if self.refuses:
            self.attempts = count_refusal(self.attempts, "no", self.now)
            return
        self.evicted += 1
        assert self.evicted == 1, "a pod is evicted once"
        self.pod = replace(self.pod, metadata=replace(self.pod.metadata, deletion_timestamp=text(self.now)))

    def check_turn(self, found):
        """Never before the others are done, unless they are overdue; and never what nobody wanted at the last round."""
        assert not found.is_over
        for target in found.status.target_responders:
            if target.name == EVICTOR:
                continue
            said = found.find_progress(target.name)
            assert target.state in ENDED
            heard = said.heartbeat_time or said.start_time
            silent = found.find_progress(EVICTOR).start_time - heard
            assert said.completion_time or silent >= timedelta(seconds=HEARTBEAT_SECONDS)


def _merge(stored, wanted):
    key = "type" if any("type" in one for one in wanted) else "name"
    known = {one[key]: one for one in stored}
    for one in wanted:
        changed = {**known.get(one[key], {}), **one}
        known[one[key]] = {name: value for name, value in changed.items() if value is not None}
    return [*known.values()]


def _plain(facts):
    """As JSON; without what the adapter does not send."""
    found = msgspec.json.decode(msgspec.json.encode(facts))
    return {name: value for name, value in found.items() if value is not None and value != ""}


def _has_moved_on(before: PodEviction, after: PodEviction) -> bool:
    return before.status.target_responders != after.status.target_responders


@given(EVENTS, st.sampled_from([[], [(FIRST, 2000)], [(SECOND, 2000), (FIRST, 3000)]]))
def test_every_write_is_valid_and_the_pod_is_evicted_once_and_in_turn(events, responders):
    cluster = Cluster(responders)
    cluster.play(events)
    cluster.round()
    wanted = any(one.is_wanted for one in cluster.requests)
    over = cluster.eviction.is_over
    if not wanted and not over:
        assert cluster.gone_at is not None, "what nobody wants is over at once, unless the pod has just gone"
    if over and not cluster.eviction.is_evicted:
        assert not [one for one in cluster.eviction.status.target_responders if one.state is ResponderState.ACTIVE]


@given(EVENTS)
def test_what_is_wanted_comes_to_an_end(events):
    """Whatever happened: with time, and without a budget that refuses."""
    cluster = Cluster([(FIRST, 2000)])
    cluster.play(events, without=("budget",))
    for _ in range(6):
        cluster.intent((0, EvictionIntent.EVICTION))
        cluster.round()
        if cluster.pod and cluster.pod.metadata.deletion_timestamp:
            cluster.remove(None)
        cluster.wait(HEARTBEAT_SECONDS)
    assert cluster.eviction.is_over
