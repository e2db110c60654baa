"""The store: order, history, who is woken, and what is given up."""

import pytest

from lastcall_lab.apiserver.storage.store import FIRST, Compacted, RevisionConflict, StorageKey, Store


def put(store, name, *, resource="pods", namespace="n", **labels):
    key = StorageKey(resource, namespace, name)
    old = store.get(key)
    obj = {"kind": "Pod", "metadata": {"name": name, "labels": labels}}
    return store.put(key, obj, expected=old.revision if old else None)


def remove(store, name, resource="pods"):
    stored = store.get(StorageKey(resource, "n", name))
    return store.delete(stored.key, stored.to_object(), expected=stored.revision)


def names(items):
    return " ".join(f"{one.key.namespace}/{one.key.name}" for one in items)


def test_objects_come_in_the_order_of_their_paths():
    store = Store()
    for namespace, name in [("b", "x"), ("a", "x"), ("a-b", "y"), ("a", "a"), ("a0", "z")]:
        put(store, name, namespace=namespace)
    put(store, "other", resource="nodes", namespace="")
    assert names(store.objects("pods")) == "a-b/y a/a a/x a0/z b/x"
    assert names(store.objects("pods", "a")) == "a/a a/x"
    assert names(store.objects("pods", "a", ("a/", "a"))) == "a/x"
    assert names(store.objects("pods", "", ("a/", "a"))) == "a/x a0/z b/x"
    assert names(store.objects("nodes")) == "/other"
    assert store.count("pods") == 5
    assert names(store.objects("leases")) == ""


def test_an_object_that_is_new_is_new_and_one_that_has_gone_is_not_written_again():
    store = Store()
    key = StorageKey("pods", "n", "a")
    first = store.put(key, {"metadata": {"name": "a"}}, expected=None)
    with pytest.raises(RevisionConflict):
        store.put(key, {"metadata": {"name": "a"}}, expected=None)
    store.delete(key, {"metadata": {"name": "a"}}, expected=first.revision)
    for expected in (first.revision, store.revision, 0):
        with pytest.raises(RevisionConflict):
            store.put(key, {"metadata": {"name": "a"}}, expected=expected)
    with pytest.raises(RevisionConflict):
        store.delete(key, {"metadata": {"name": "a"}}, expected=first.revision)
    assert store.get(key) is None


def test_a_write_must_know_what_it_replaces():
    store = Store()
    first = put(store, "a")
    with pytest.raises(RevisionConflict):
        store.put(first.key, {"metadata": {"name": "a"}}, expected=None)
    put(store, "a")
    with pytest.raises(RevisionConflict):
        store.put(first.key, {"metadata": {"name": "a"}}, expected=first.revision)
    with pytest.raises(RevisionConflict):
        store.delete(first.key, {"metadata": {"name": "a"}}, expected=first.revision)


def test_the_past_can_be_listed():
    store = Store()
    put(store, "a", v="1")
    put(store, "c")
    then = store.revision
    put(store, "a", v="2")
    put(store, "b")
    remove(store, "c")
    put(store, "x", namespace="m")
    past = store.objects_at("pods", "", then)
    assert names(past) == "n/a n/c"
    assert past[0].labels == {"v": "1"}
    assert names(store.objects_at("pods", "n", then, ("n/", "a"))) == "n/c"
    assert names(store.objects_at("pods", "", store.revision)) == "m/x n/a n/b"


def test_compaction_forgets_the_past_of_all_resources():
    store = Store()
    put(store, "a")
    put(store, "n1", resource="nodes")
    store.compact(1)
    assert names(store.objects_at("pods", "", 1)) == "n/a"
    with pytest.raises(Compacted):
        store.objects_at("nodes", "", 0)
    with pytest.raises(Compacted):
        store.open_feed("leases", 0)
    assert [change.revision for change in store.open_feed("nodes", 1).take(10)] == [2]
    store.compact(99)
    assert store.compacted == store.revision == 2


def test_history_is_bounded_for_each_resource():
    store = Store(history=10)
    put(store, "quiet", resource="nodes")
    quiet, slow = store.open_feed("nodes", 0), store.open_feed("pods", 0)
    for _ in range(1200):
        put(store, "a")
    with pytest.raises(Compacted):
        slow.take(10)
    assert len(quiet.take(10)) == 1
    oldest = store.oldest_revision("pods")
    assert store.revision - 1010 <= oldest <= store.revision - 10
    assert store.open_feed("pods", oldest).take(1)[0].revision == oldest + 1
    with pytest.raises(Compacted):
        store.open_feed("pods", oldest - 1)


def test_a_feed_hands_out_changes_once_and_in_order():
    store = Store()
    feed = store.open_feed("pods", 0)
    for name in "abc":
        put(store, name)
    assert [change.revision for change in feed.take(2)] == [1, 2]
    assert [change.revision for change in feed.take(2)] == [3]
    assert feed.take(2) == ()
    remove(store, "a")
    assert [change.kind.value for change in feed.take(2)] == ["DELETED"]


def test_who_waits_for_the_future_hears_nothing_of_what_comes_before():
    store = Store()
    feed = store.open_feed("pods", 2)
    for name in "abc":
        put(store, name)
    assert [change.revision for change in feed.take(9)] == [3]


async def test_only_readers_of_the_resource_wake():
    store = Store()
    pods, nodes = store.open_feed("pods", 0).wait_for_change(), store.open_feed("nodes", 0).wait_for_change()
    put(store, "a")
    assert pods.done()
    assert not nodes.done()


async def test_readers_that_come_and_go_leave_nothing_behind():
    store = Store()
    feed = store.open_feed("pods", 0)
    waiting = feed.wait_for_change()
    assert waiting is feed.wait_for_change()
    put(store, "a")
    assert waiting.done()
    assert len(feed.take(9)) == 1
    gone = feed.wait_for_change()
    feed.close()
    put(store, "a")
    assert not gone.done()


async def test_who_is_behind_does_not_wait():
    store = Store()
    feed = store.open_feed("pods", 2)
    for name in "abc":
        put(store, name)
    assert [change.revision for change in feed.take(2)] == [3]
    assert not feed.wait_for_change().done()


async def test_a_reader_wakes_for_what_concerns_it_alone_and_is_never_behind_while_it_waits():
    store = Store(history=10, fields_of=lambda resource, obj: {"node": obj["metadata"]["labels"].get("node", "")})
    feeds = [store.open_feed("pods", 0, interest) for interest in (("node", "n1"), ("node", ""), None)]
    one, none, every = [feed.wait_for_change() for feed in feeds]
    put(store, "a", node="n2")
    assert [one.done(), none.done(), every.done()] == [False, False, True]
    put(store, "b")
    assert [one.done(), none.done()] == [False, True]
    for _ in range(1200):
        put(store, "a", node="n2")
    assert feeds[0].take(9) == ()
    put(store, "a", node="n1")
    assert one.done()
    assert [change.new.fields["node"] for change in feeds[0].take(9)] == ["n1"]
    leaves = feeds[0].wait_for_change()
    put(store, "a", node="n2")
    assert leaves.done()
    for _ in range(9):
        put(store, "a", node="n2")
    put(store, "a", node="n1")
    assert [change.new.fields["node"] for change in feeds[0].take(4)] == ["n2"]
    assert [change.new.fields["node"] for change in feeds[0].take(4)] == ["n1"]
    assert feeds[0].take(4) == ()
    with pytest.raises(Compacted):
        feeds[1].take(9)


def test_what_was_written_down_goes_on():
    store = Store()
    put(store, "b", app="x")
    put(store, "a")
    again = Store()
    again.load(7, [(one.key, one.revision, one.data) for one in reversed(store.objects("pods"))])
    assert names(again.objects("pods")) == "n/a n/b"
    assert again.get(StorageKey("pods", "n", "b")).labels == {"app": "x"}
    assert put(again, "c").revision == 8
    with pytest.raises(Compacted):
        again.open_feed("pods", 6)
    again.describe_fields(lambda resource, obj: {"f": resource + obj["metadata"]["name"]})
    assert again.get(StorageKey("pods", "n", "a")).fields == {"f": "podsa"}


# -- the index of pods by their node ---------------------------------------------------------------------------------


def by_node(resource, obj):
    """As the API server has it: empty fields are left out."""
    return {"spec.nodeName": name} if (name := obj.get("spec", {}).get("nodeName")) else {}


def bind(store, name, node, *, resource="pods", namespace="n"):
    key = StorageKey(resource, namespace, name)
    old = store.get(key)
    obj = {"metadata": {"name": name}, "spec": {"nodeName": node}}
    store.put(key, obj, expected=old.revision if old else None)


def on(store, node, resource="pods", namespace="", after=FIRST):
    return names(store.objects(resource, namespace, after, ("spec.nodeName", node)))


def test_pods_of_a_node_are_found_without_the_others():
    store = Store(by_node)
    bind(store, "b", "n1")
    bind(store, "a", "n1")
    bind(store, "c", "n2")
    bind(store, "d", "")
    bind(store, "a", "n1", namespace="m")
    assert on(store, "n1") == "m/a n/a n/b"
    assert on(store, "n1", namespace="n") == "n/a n/b"
    assert on(store, "n1", after=("n/", "a")) == "n/b"
    assert on(store, "") == "n/d"
    assert on(store, "n3") == ""


def test_a_pod_is_found_where_it_is_now():
    store = Store(by_node)
    bind(store, "a", "")
    bind(store, "b", "n1")
    bind(store, "a", "n1")
    assert on(store, "") == ""
    assert on(store, "n1") == "n/a n/b"
    remove(store, "b")
    assert on(store, "n1") == "n/a"


def test_what_has_no_index_is_searched():
    store = Store(by_node)
    bind(store, "a", "n1")
    bind(store, "b", "n2")
    bind(store, "c", "n1", resource="other")
    bind(store, "d", "n2", resource="other")
    assert on(store, "n1", "other") == "n/c n/d"
    assert names(store.objects("pods", "", FIRST, ("metadata.name", "a"))) == "n/a n/b"


def test_what_is_asked_for_by_its_name_is_not_searched():
    store = Store(lambda _, obj: {"metadata.name": obj["metadata"]["name"]})
    for namespace in ("m", "n"):
        bind(store, "a", "", namespace=namespace)
        bind(store, "b", "", namespace=namespace)
    bind(store, "a", "", namespace="", resource="nodes")
    bind(store, "b", "", namespace="", resource="nodes")
    by_name = ("metadata.name", "b")
    assert names(store.objects("pods", "n", FIRST, by_name)) == "n/b"
    assert names(store.objects("pods", "o", FIRST, by_name)) == ""
    assert names(store.objects("pods", "n", ("n/", "b"), by_name)) == ""
    assert names(store.objects("nodes", "", FIRST, by_name)) == "/b"
    assert names(store.objects("nodes", "", FIRST, ("metadata.name", "c"))) == ""
    assert names(store.objects("none", "", FIRST, by_name)) == ""
    found = names(store.objects("pods", "", FIRST, by_name)).split()
    assert {"m/b", "n/b"} <= set(found)  # in whichever namespace: whoever asks looks at each


def test_an_index_knows_what_was_there_at_the_beginning():
    before = Store()
    bind(before, "a", "n1")
    bind(before, "b", "n2")
    store = Store()
    store.load(2, [(one.key, one.revision, one.data) for one in before.objects("pods")])
    store.describe_fields(by_node)
    assert on(store, "n1") == "n/a"
    bind(store, "a", "n2")
    assert on(store, "n2") == "n/a n/b"
