"""One object that cannot be read stops neither the list nor the watch of the others, and is neither changed nor gone by it."""

import asyncio
import contextlib
import logging
from random import Random

import pytest
from support.kube.scripted_server import Script, Stream, gone, item, line, listed

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import NODES
from lastcall.model.observed import WatchedNode
from lastcall_lab import virtual


def unread(name, revision, uid="", taints=5):
    """Its taints are no list."""
    return {**item(name, revision, uid), "spec": {"taints": taints}}


async def lived(script, *, shared=False):
    """What was told, and what is known: the names of objects with the revision at which each was read."""
    resource, clock = NODES.with_shape(WatchedNode), virtual.VirtualClock()
    watching = Informer(Client(script), resource, clock=clock, random=Random(1), shared=shared)
    told = []

    async def listen():
        async with contextlib.aclosing(watching.changes()) as changes:
            async for change in changes:
                heard = (change.kind.value, change.key.name)
                told.append(heard)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(100):
            await listen()
    assert watching.failure is None
    return told, {key.name: node.metadata.resource_version for key, node in watching.objects.items()}


@pytest.mark.parametrize("shared", [False, True])
def test_a_list_is_told_without_those_that_cannot_be_read(shared):
    script = Script(listed(5, item("a", 1), unread("b", 2), item("c", 3)), Stream(line("MODIFIED", item("a", 6)), None))
    told, known = virtual.run(lived(script, shared=shared))
    assert told == [("ADDED", "a"), ("ADDED", "c"), ("SYNCED", ""), ("MODIFIED", "a")]
    assert known == {"a": "6", "c": "3"}
    assert script.order == ["list", "watch 5"]


def test_a_watch_goes_on_after_one_and_what_was_known_of_it_stays():
    stream = Stream(line("MODIFIED", unread("a", 6)), line("ADDED", unread("b", 7)), line("ADDED", item("c", 8)), 10)
    script = Script(listed(5, item("a", 1)), stream, Stream(None))
    told, known = virtual.run(lived(script))
    assert told == [("ADDED", "a"), ("SYNCED", ""), ("ADDED", "c")]
    assert known == {"a": "1", "c": "8"}
    assert script.order == ["list", "watch 5", "watch 8"]


def test_what_can_be_read_again_is_told():
    stream = Stream(*(line("MODIFIED", one) for one in (unread("a", 6), item("a", 7), item("b", 8))), None)
    told, known = virtual.run(lived(Script(listed(5, item("a", 1), unread("b", 2)), stream)))
    assert told == [("ADDED", "a"), ("SYNCED", ""), ("MODIFIED", "a"), ("ADDED", "b")]
    assert known == {"a": "7", "b": "8"}


def test_a_new_list_leaves_what_was_known_as_it_was():
    after = listed(15, unread("a", 12), unread("new", 13), item("c", 14))
    script = Script(listed(5, item("a", 1)), Stream(5, line("ERROR", gone())), after, Stream(None))
    told, known = virtual.run(lived(script))
    assert told == [("ADDED", "a"), ("SYNCED", ""), ("ADDED", "c"), ("SYNCED", "")]
    assert known == {"a": "1", "c": "14"}


@pytest.mark.parametrize("kind", ["DELETED", "MODIFIED", "list"])
def test_one_that_has_gone_is_told_also_if_its_last_word_or_its_successor_cannot_be_read(kind):
    """Another object of its name is another one."""
    last = unread("a", 12, "a" if kind == "DELETED" else "another")
    rest = [Stream(5, line("ERROR", gone())), listed(15, last)] if kind == "list" else [Stream(line(kind, last), 5)]
    told, known = virtual.run(lived(Script(listed(5, item("a", 1)), *rest, Stream(None))))
    assert [one for one in told if one[1]] == [("ADDED", "a"), ("DELETED", "a")]
    assert known == {}


def test_each_is_told_of_once_for_each_reason(caplog):
    again = (unread("a", 6), unread("a", 7), unread("a", 8, taints="none"), unread("b", 9))
    stream = Stream(*(line("MODIFIED", one) for one in again), 5, line("ERROR", gone()))
    script = Script(listed(5, unread("a", 1)), stream, listed(15, unread("b", 9), unread("c", 14)), Stream(None))
    with caplog.at_level(logging.WARNING):
        virtual.run(lived(script))
    said = [one.getMessage() for one in caplog.records if "passed over" in one.getMessage()]
    assert [(one.split()[2], "got `int`" in one) for one in said] == [
        ("a", True),
        ("a", False),
        ("b", True),
        ("c", True),
    ]
    assert said[0].startswith("watching nodes: a is passed over, what the server sent cannot be read: ")


def test_one_of_which_nobody_can_say_which_it_is_is_a_failure():
    nameless = {"metadata": {"resourceVersion": "2"}, "spec": {"taints": 5}}
    script = Script(listed(5, nameless), listed(6, item("a", 1)), Stream(None))
    told, _ = virtual.run(lived(script))
    assert told == [("ADDED", "a"), ("SYNCED", "")]
    assert script.order == ["list", "list", "watch 6"]
