"""What holds for every state of a cluster, whatever it is: lastcall's rules beside upstream's."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from support.failover.controller_manager import Upstream
from support.failover.random_snapshots import NAMES, clusters, rules
from support.failover.snapshots import NOW, OUT, planned, state

from lastcall.failover.upstream.plan import build_plan
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.model.state_file import read_state


def index(objects, kind):
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def is_ready(found):
    return any(one["status"] == "True" for one in found["status"]["conditions"])


def has_sign(found, leases):
    """Within the last 50 seconds."""
    name = found["metadata"]["name"]
    times = [one.get("lastHeartbeatTime") for one in found["status"]["conditions"]]
    times += [leases[name]["spec"]["renewTime"]] if name in leases else []
    limit = (NOW - timedelta(seconds=50)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return any(one and one > limit for one in times)


@given(clusters(), rules)
def test_lastcall_forces_nothing_that_upstream_would_not(objects, rules):
    ours, theirs = planned(*objects, **rules), planned(*objects, upstream=True, **rules)
    for part in ("forceDelete", "forceDetach"):
        assert [one for one in ours[part] if one not in theirs[part]] == []


@given(clusters(), rules)
def test_nothing_is_forced_from_a_node_that_is_missing_or_shows_life(objects, rules):
    """But for finished pods, which need no node any more."""
    plan = planned(*objects, **rules)
    nodes, leases, found = (index(objects, kind) for kind in ("Node", "Lease", "Pod"))
    unproven = {name for name in NAMES if name not in nodes or is_ready(nodes[name]) or has_sign(nodes[name], leases)}
    forced = [one for one in plan["forceDelete"] if one["reason"] not in ("terminated", "unscheduled")]
    assert [one for one in forced if found[one["name"]]["spec"]["nodeName"] in unproven] == []
    assert [one for one in plan["forceDetach"] if one["node"] in unproven] == []


@given(clusters(), rules, st.booleans())
def test_every_pod_in_trouble_is_in_a_list_and_no_kept_one_is_touched(objects, rules, upstream):
    plan = planned(*objects, upstream=upstream, **rules)
    nodes = index(objects, "Node")
    lists = {part: {one["name"] for one in plan[part]} for part in ("forceDelete", "evict", "keep")}
    assert not lists["keep"] & (lists["forceDelete"] | lists["evict"])
    for name, found in index(objects, "Pod").items():
        on = found["spec"]["nodeName"]
        where = nodes.get(on)
        troubled = bool(on) and (
            where is None or not is_ready(where) or any(one["key"] == OUT for one in where["spec"]["taints"])
        )
        assert (name in set().union(*lists.values())) or not troubled
        assert troubled or name not in lists["keep"]


@given(clusters(), rules, st.booleans())
def test_every_list_is_sorted_without_doubles_and_no_eviction_is_in_the_past(objects, rules, upstream):
    plan = build_plan(read_state(state(*objects), "s").snapshot, PlanRules(upstream=upstream, **rules), NOW)
    for keys in (
        [(one.namespace, one.name) for one in plan.force_delete],
        [one.volume_attachment for one in plan.force_detach],
        [(one.namespace, one.name) for one in plan.evict],
        [(one.namespace, one.name) for one in plan.keep],
    ):
        assert keys == sorted(set(keys))
    assert all(one.at >= NOW for one in plan.evict)


@given(clusters(), rules, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_file_does_not_matter(objects, rules, upstream, random):
    shuffled = random.sample(objects, len(objects))
    assert planned(*shuffled, upstream=upstream, **rules) == planned(*objects, upstream=upstream, **rules)


@given(clusters(), rules, st.booleans())
def test_a_volume_that_a_running_pod_of_its_node_wants_stays(objects, rules, upstream):
    plan = planned(*objects, upstream=upstream, **rules)
    nodes = index(objects, "Node")
    bound = {one["spec"]["claimRef"]["name"]: one for one in objects if one["kind"] == "PersistentVolume"}
    for found in index(objects, "Pod").values():
        on, volumes = found["spec"]["nodeName"], found["spec"]["volumes"]
        alive = found["status"]["phase"] == "Running" and "deletionTimestamp" not in found["metadata"]
        if volumes and alive and on in nodes:
            wanted = bound[volumes[0]["persistentVolumeClaim"]["claimName"]]
            name = f"va-{wanted['metadata']['name']}-{on}"
            released = wanted["status"]["phase"] == "Released"
            assert released or name not in [one["volumeAttachment"] for one in plan["forceDetach"]]


@given(clusters(), rules)
def test_upstreams_rules_are_those_of_upstream(objects, rules):
    plan, upstream = planned(*objects, upstream=True, **rules), Upstream(objects, rules)
    assert {(one["name"], one["reason"]) for one in plan["forceDelete"]} == set(upstream.collected().items())
    assert {(one["name"], one["at"]) for one in plan["evict"]} == set(upstream.evicted().items())
    assert {(one["volumeAttachment"], one["reason"]) for one in plan["forceDetach"]} == set(upstream.detached().items())
