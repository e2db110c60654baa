"""What holds for every state of cluster and application: judged by arithmetic of its own."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from support.guard.reviews import CONTROLLER, KUBELET, NOW, PERSON, at, deletion, eviction, outcome, pod, policy, state

NAMES = ("db-0", "db-1", "db-2", "gone")
STATES = ("Preparing", "Ready", "Stalled", "Unhealthy", "Released")


@st.composite
def entries(draw):
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        entry = {"name": name, "uid": f"uid-{name}", "state": draw(st.sampled_from(STATES))}
        if draw(st.booleans()):
            entry["since"] = at(draw(st.integers(-4000, 0)))
        if draw(st.booleans()):
            entry["verifiedAt"] = at(draw(st.integers(-20, 20)))
        found.append(entry)
    return found


LIMITS = st.fixed_dictionaries(
    {"maxUnavailable": st.sampled_from([1, 2])},
    optional={"holdLimit": st.just("30m"), "onLimit": st.sampled_from(["Hold", "Allow"])},
)


def age(entry, field):
    return (NOW - datetime.fromisoformat(entry[field])).total_seconds() if field in entry else None


def removal(name, by):
    return eviction(name) if by == "evict" else deletion(pod(name))


@given(entries(), LIMITS, st.sampled_from(["delete", "evict"]))
def test_a_guarded_pod_goes_only_if_verified_or_beyond_a_limit_that_lets_it_go(found, limits, by):
    cluster = state(policy(*found, **limits))
    for name in NAMES[:3]:
        entry = next((one for one in found if one["name"] == name), {})
        verified = age(entry, "verifiedAt")
        ready = entry.get("state") == "Ready" and verified is not None and abs(verified) <= 10
        since = age(entry, "since")
        is_held = entry.get("state") != "Released"
        lets_go = limits.get("onLimit") == "Allow" and "holdLimit" in limits
        beyond = is_held and lets_go and since is not None and since >= 1800
        allowed, reason = outcome(removal(name, by), cluster)
        assert not allowed or ready or beyond, (name, reason)
        assert allowed or not beyond


@given(entries(), LIMITS, st.sampled_from(["delete", "evict"]))
def test_no_more_go_at_a_time_than_the_policy_says(found, limits, by):
    """Together with those that are gone and have no successor yet; what a limit lets go is beyond the promise."""
    if limits.get("onLimit") == "Allow":
        return
    cluster = state(policy(*found, **limits))
    gone = sum(one["name"] == "gone" and one["state"] in STATES[:3] for one in found)
    going = sum(outcome(removal(name, by), cluster)[0] for name in NAMES[:3])
    assert going + gone <= max(limits["maxUnavailable"], gone)


@given(entries(), LIMITS)
def test_the_first_in_line_is_not_held_once_it_is_ready(found, limits):
    """Whatever the others do, unless one is gone whose replacement is not up."""
    first = {"name": "db-0", "uid": "uid-db-0", "state": "Ready", "since": at(-9999), "verifiedAt": at(0)}
    others = [one for one in found if one["name"] not in ("db-0", "gone")]
    assert outcome(deletion(), state(policy(first, *others, **limits)))[0]


@given(entries(), LIMITS, st.sampled_from([PERSON, CONTROLLER, KUBELET]), st.booleans())
def test_the_same_question_has_the_same_answer_for_a_dry_run(found, limits, user, evict):
    cluster = state(policy(*found, **limits))
    if evict:
        asked, dry = eviction(user=user), eviction(user=user, options={"dryRun": ["All"]})
    else:
        asked, dry = deletion(user=user), deletion(user=user, dryRun=True)
    assert outcome(asked, cluster) == outcome(dry, cluster)


@given(entries(), LIMITS)
def test_a_kubelet_is_never_refused(found, limits):
    assert outcome(deletion(user=KUBELET), state(policy(*found, **limits)))[0]


@given(entries(), LIMITS, st.sampled_from(["deletionTimestamp", "Succeeded", "Failed"]))
def test_what_has_ended_or_is_ending_is_never_refused(found, limits, how):
    ending = pod(deletionTimestamp=at(0)) if how == "deletionTimestamp" else pod(phase=how)
    assert outcome(deletion(ending), state(policy(*found, **limits)))[0]
