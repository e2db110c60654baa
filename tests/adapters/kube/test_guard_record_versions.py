"""Two versions of the guard write the status of one GuardPolicy: neither takes away what it does not know."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.guard.shop import POLICIES, WHEN, Shop, entry, in_shop

from lastcall.model.guard_policy import GuardPolicyCondition, HeldPod, PreparationState
from lastcall_lab import virtual

NEXT = {
    "name": "db-0",
    "uid": "u1",
    "state": "Draining",
    "request": "Preemption",
    "attempts": 0,
    "stage": "fence",
    "shards": [{"name": "s1", "left": 3}],
    "message": "moves its shards",
}


async def write_next(shop, *entries, **fields):
    """As the next version does, whose fields and states the API server knows."""
    status = {"pods": list(entries), "heldPods": len(entries), "readyPods": 0, **fields}
    await shop.server.good("PATCH", f"{POLICIES}/db/status", {"status": status})


async def stored(shop):
    return (await shop.server.good("GET", f"{POLICIES}/db"))["status"]


def by_uid(status):
    return {one["uid"]: one for one in status["pods"]}


@in_shop
async def test_what_a_newer_version_has_written_stays(shop):
    await write_next(shop, NEXT, paused={"by": "ann"})
    policy = await shop.policy()
    await shop.records.change_entry(policy, "u2", lambda *_: entry("u2"))
    await shop.records.change_entry(policy, "u1", lambda _, held: replace(held, last_request_at=WHEN))
    await shop.records.remove_entry(policy, "u2")
    status = await stored(shop)
    assert status["pods"] == [NEXT | {"lastRequestAt": "2026-11-28T12:00:00Z"}]
    assert status["paused"] == {"by": "ann"}
    assert (status["heldPods"], status["readyPods"]) == (1, 0)


@in_shop
async def test_fields_that_lose_their_meaning_are_removed_and_unknown_ones_stay(shop):
    await write_next(shop, NEXT | {"state": "Preparing", "percent": 40, "etaSeconds": 9})
    change = lambda _, held: replace(held, state=PreparationState.STALLED, percent=None, message="")  # noqa: E731
    await shop.records.change_entry(await shop.policy(), "u1", change)
    expected = NEXT | {"state": "Stalled", "etaSeconds": 9}
    del expected["message"]
    assert (await stored(shop))["pods"] == [expected]


@in_shop
async def test_a_preparation_that_begins_anew_has_nothing_of_the_last_one(shop):
    await write_next(shop, NEXT | {"state": "Released"})
    await shop.records.change_entry(await shop.policy(), "u1", lambda *_: entry("u1"))
    fields = {"attempts": 0, "name": "db-0", "since": "2026-11-28T12:00:00Z", "state": "Preparing", "uid": "u1"}
    assert (await stored(shop))["pods"] == [fields]


@in_shop
async def test_conditions_of_other_types_stay(shop):
    other = {"type": "Budgeted", "status": "True", "reason": "Found", "message": "m", "observedGeneration": 4}
    await write_next(shop, conditions=[other | {"lastTransitionTime": "2026-11-28T12:00:00Z"}])
    for status in ("False", "True"):
        condition = GuardPolicyCondition("Accepted", status, "R", "m", WHEN)
        await shop.records.write_policy_condition(await shop.policy(), condition)
    conditions = (await stored(shop))["conditions"]
    found = {one["type"]: one for one in conditions}
    assert len(conditions) == len(found)
    assert found["Budgeted"] == other | {"lastTransitionTime": "2026-11-28T12:00:00Z"}
    assert found["Accepted"]["status"] == "True"


@in_shop
async def test_two_versions_that_write_at_once_lose_nothing_of_each_other(shop):
    """Each repeats its write when the other one was first."""
    policy = await shop.policy()

    async def write_as_next(number):
        for _ in range(20):
            now = await shop.server.good("GET", f"{POLICIES}/db")
            pods = [NEXT | {"uid": f"next-{number}"}, *now.get("status", {}).get("pods", ())]
            patch = {"metadata": {"resourceVersion": now["metadata"]["resourceVersion"]}, "status": {"pods": pods}}
            code, _ = await shop.server.ask("PATCH", f"{POLICIES}/db/status", patch)
            if code == 200:
                return
            assert code == 409

    async def write_as_this(number):
        await shop.records.change_entry(policy, f"this-{number}", lambda *_: entry(f"this-{number}"))

    await asyncio.gather(*(one(number) for number in range(6) for one in (write_as_next, write_as_this)))
    found = by_uid(await stored(shop))
    assert set(found) == {f"{who}-{number}" for number in range(6) for who in ("this", "next")}
    assert all(found[f"next-{number}"] == NEXT | {"uid": f"next-{number}"} for number in range(6))


VALUES = st.recursive(st.booleans() | st.integers(0, 9) | st.sampled_from("abc"), st.lists, max_leaves=3)
UNKNOWN = st.dictionaries(st.sampled_from(["nextA", "nextB", "nextC"]), VALUES, max_size=3)
STATES = st.sampled_from([*(one.value for one in PreparationState if one is not PreparationState.UNKNOWN), "Draining"])


@st.composite
def entries(draw):
    found = []
    for uid in draw(st.lists(st.sampled_from(["u1", "u2", "u3"]), unique=True)):
        known = {"name": uid, "uid": uid, "state": draw(STATES), "attempts": draw(st.integers(0, 3))}
        found.append(known | draw(UNKNOWN))
    return found


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from([PreparationState.READY, PreparationState.RELEASED]),
        "attempts": st.integers(0, 3),
        "message": st.sampled_from(["", "m"]),
        "last_request_at": st.sampled_from([None, WHEN]),
    },
)


@given(entries(), st.lists(st.tuples(st.sampled_from(["u1", "u2", "u3", "u4"]), CHANGES), max_size=4))
def test_whatever_is_written_only_what_is_changed_is_changed(before, changes):
    """Compared with a model: one dictionary for each entry, of which the known fields alone are replaced."""

    async def main():
        shop = await Shop().fill()
        await write_next(shop, *before)
        model = {one["uid"]: dict(one) for one in before}
        for uid, fields in changes:
            await change(shop, model, uid, fields)
        assert by_uid(await stored(shop)) == model

    virtual.run(main())


async def change(shop, model, uid, fields):
    def changed(_, held):
        return replace(held or HeldPod(name=uid, uid=uid, state=PreparationState.PREPARING), **fields)

    await shop.records.change_entry(await shop.policy(), uid, changed)
    found = model.setdefault(uid, {"name": uid, "uid": uid, "state": "Preparing", "attempts": 0})
    if found["state"] == "Released" and fields.get("state", PreparationState.RELEASED) is not PreparationState.RELEASED:
        known = ("name", "uid", "state", "attempts", "message", "lastRequestAt")
        model[uid] = found = {name: value for name, value in found.items() if name in known}
    names = {"last_request_at": "lastRequestAt"}
    for name, value in fields.items():
        text = {PreparationState.READY: "Ready", PreparationState.RELEASED: "Released", WHEN: "2026-11-28T12:00:00Z"}
        found[names.get(name, name)] = text.get(value, value)
        if found[names.get(name, name)] in (None, ""):
            del found[names.get(name, name)]
