"""What a watch lives through, in virtual time: a server that fails, compacts, is silent, or ends every watch at once."""

import asyncio
import contextlib
import gc
from random import Random

import pytest
from support.kube.scripted_server import Script, Stream, gone, item, line, listed

from lastcall import errors
from lastcall.adapters.kube import decoding
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import CONFIG_MAPS
from lastcall_lab import virtual


async def lived(script, seconds=1000.0, **rest):
    """What was told within some time."""
    watching = Informer(Client(script), CONFIG_MAPS, clock=virtual.VirtualClock(), random=Random(1), **rest)
    told = []

    async def listen():
        async with contextlib.aclosing(watching.changes()) as changes:
            async for change in changes:
                old = change.old["metadata"]["resourceVersion"] if change.old else ""
                told.append((change.kind.value, change.key.name, old))

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await listen()
    return told, watching


def test_a_watch_goes_on_from_the_last_event_or_bookmark():
    script = Script(
        listed(5),
        Stream(line("ADDED", item("a", 6)), 10, line("MODIFIED", item("a", 8)), 10),
        Stream(10, line("BOOKMARK", {"metadata": {"resourceVersion": "20"}}), 10),
        Stream(None),
    )
    told, _ = virtual.run(lived(script, 100))
    assert told == [("SYNCED", "", ""), ("ADDED", "a", ""), ("MODIFIED", "a", "6")]
    assert script.order == ["list", "watch 5", "watch 8", "watch 20"]


def test_events_that_are_cut_anywhere_are_whole():
    data = line("ADDED", item("a", 6)) + line("ADDED", item("b", 7))
    script = Script(listed(5), Stream(*(data[i : i + 7] for i in range(0, len(data), 7)), None))
    told, _ = virtual.run(lived(script, 10))
    assert told == [("SYNCED", "", ""), ("ADDED", "a", ""), ("ADDED", "b", "")]


def differences():
    """A list after a gap: one gone, one changed, one replaced by another of its name, one as it was."""
    before = [item("goes", 1), item("changes", 2), item("replaced", 3, "old"), item("stays", 4)]
    after = [item("changes", 12), item("replaced", 13, "new"), item("stays", 4), item("new", 14)]
    return listed(5, *before), listed(15, *after)


EXPECTED = [
    ("DELETED", "goes", "1"),
    ("DELETED", "replaced", "3"),
    ("MODIFIED", "changes", "2"),
    ("ADDED", "replaced", ""),
    ("ADDED", "new", ""),
    ("SYNCED", "", ""),
]


def test_gone_as_an_event_means_a_list_and_its_differences():
    before, after = differences()
    script = Script(before, Stream(5, line("ERROR", gone())), after, Stream(None))
    told, watching = virtual.run(lived(script, 100))
    assert told[5:] == EXPECTED
    assert script.order == ["list", "watch 5", "list", "watch 15"]
    assert watching.failure is None


def test_gone_as_an_answer_means_the_same():
    before, after = differences()
    script = Script(before, Stream(5), gone(), after, Stream(None))
    told, _ = virtual.run(lived(script, 100))
    assert told[5:] == EXPECTED
    assert script.order == ["list", "watch 5", "watch 5", "list", "watch 15"]


def test_any_error_in_a_stream_means_a_list():
    broken = {"kind": "Status", "status": "Failure", "message": "etcd", "reason": "InternalError", "code": 500}
    script = Script(listed(5, item("a", 1)), Stream(5, line("ERROR", broken)), listed(9), Stream(None))
    told, _ = virtual.run(lived(script, 100))
    assert told == [("ADDED", "a", ""), ("SYNCED", "", ""), ("DELETED", "a", "1"), ("SYNCED", "", "")]


def test_silence_opens_the_watch_anew_and_closes_the_old_one():
    silent = Stream(None)
    script = Script(listed(5), silent, Stream(None))
    virtual.run(lived(script, 20, inactivity=10))
    assert script.asked == [(0, "list"), (0, "watch 5"), (10, "watch 5")]
    assert silent.closed


def test_a_second_silence_means_a_list():
    """As after etcd was restored: a watch from a revision that is not there yet hears nothing, however much happens."""
    script = Script(listed(90, item("a", 80)), Stream(None), Stream(None), listed(40, item("a", 40)), Stream(None))
    told, watching = virtual.run(lived(script, 25, inactivity=10))
    assert script.order == ["list", "watch 90", "watch 90", "list", "watch 40"]
    assert told == [("ADDED", "a", ""), ("SYNCED", "", ""), ("MODIFIED", "a", "80"), ("SYNCED", "", "")]
    assert watching.revision == "40"


def test_a_bookmark_between_two_silences_is_none():
    mark = line("BOOKMARK", {"metadata": {"resourceVersion": "20"}})
    script = Script(listed(5), Stream(None), Stream(mark, None), Stream(None))
    virtual.run(lived(script, 25, inactivity=10))
    assert script.order == ["list", "watch 5", "watch 5", "watch 20"]


def test_a_server_that_is_away_is_asked_with_growing_pauses_for_ever():
    script = Script()
    told, watching = virtual.run(lived(script, 600))
    pauses = [later - sooner for (sooner, _), (later, _) in zip(script.asked, script.asked[1:], strict=False)]
    assert told == []
    assert isinstance(watching.failure, errors.Unavailable)
    assert pauses[0] < 2
    assert max(pauses) <= 60
    assert all(pause >= 30 for pause in pauses[6:])
    assert set(script.order) == {"list"}


def test_a_server_that_asks_for_a_pause_has_it():
    busy = {"kind": "Status", "message": "busy", "reason": "TooManyRequests", "code": 429}
    script = Script({**busy, "details": {"retryAfterSeconds": 7}}, busy, listed(5), Stream(None))
    virtual.run(lived(script, 100))
    (first, _), (second, _), (third, _), _ = script.asked
    assert second - first >= 7
    assert third - second < 7


def test_a_lost_watch_goes_on_where_it_was():
    lost = errors.Unavailable("cut")
    script = Script(listed(5), Stream(line("ADDED", item("a", 6)), 5, lost), lost, Stream(None))
    told, watching = virtual.run(lived(script, 100))
    assert told == [("SYNCED", "", ""), ("ADDED", "a", "")]
    assert script.order == ["list", "watch 5", "watch 6", "watch 6"]
    assert watching.objects.keys() == {("", "a")}


def test_watches_that_end_at_once_are_not_opened_without_a_pause():
    script = Script(listed(5), *(Stream() for _ in range(1000)))
    virtual.run(lived(script, 60))
    assert len(script.asked) < 20


def test_a_deletion_of_what_is_not_known_is_not_told():
    script = Script(listed(5), Stream(line("DELETED", item("a", 6)), None))
    told, _ = virtual.run(lived(script, 10))
    assert told == [("SYNCED", "", "")]


def test_nonsense_is_a_failure_and_not_the_end():
    script = Script(b"hello", listed(5), Stream(b"hello\n"), Stream(None))
    told, _ = virtual.run(lived(script, 100))
    assert told == [("SYNCED", "", "")]
    assert script.order == ["list", "list", "watch 5", "watch 5"]


async def both(*, shared):
    """What two watches of the same keep of it."""
    kept = []
    for _ in range(2):
        stream = Stream(line("MODIFIED", item("b", 6)), None)
        _, watching = await lived(Script(listed(5, item("a", 1), item("b", 2)), stream), 10.0, shared=shared)
        kept.append(watching.objects)
    return kept


def test_what_is_shared_is_read_once_for_all_who_watch_the_same():
    one, other = virtual.run(both(shared=True))
    assert one == other
    assert [obj["metadata"]["resourceVersion"] for obj in one.values()] == ["1", "6"]
    assert all(one[key] is other[key] for key in one)


def test_what_is_not_shared_is_everybodys_own():
    one, other = virtual.run(both(shared=False))
    assert one == other
    assert not any(one[key] is other[key] for key in one)


def test_what_is_shared_goes_with_the_last_who_knows_it():
    _, kept = virtual.run(lived(Script(listed(1, item("only here", 1)), Stream(None)), 10.0, shared=True))
    assert "only here" in names_shared()
    del kept, _
    gc.collect()
    assert "only here" not in names_shared()


def names_shared():
    return {known.key.name for known in decoding._SHARED.values()}


def managed(name):
    obj = item(name, 1)
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [{"manager": "kubectl"}]}}


@pytest.mark.parametrize("shared", [False, True])
def test_who_manages_which_field_is_not_kept(shared):
    """``cache.TransformStripManagedFields``."""
    stream = Stream(line("ADDED", managed("b")), None)
    _, kept = virtual.run(lived(Script(listed(5, managed("a")), stream), 10.0, shared=shared))
    assert len(kept.objects) == 2
    assert not any("managedFields" in obj["metadata"] for obj in kept.objects.values())
