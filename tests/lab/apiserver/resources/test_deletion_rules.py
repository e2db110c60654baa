"""What a deletion on the lab's API server does to an object."""

import pytest

from lastcall_lab.apiserver.kinds.namespaces import NamespaceKind
from lastcall_lab.apiserver.resources import deletion_rules
from lastcall_lab.apiserver.resources.kind_behaviour import (
    DeleteOptions,
    DeletionFate,
    DependentsPolicy,
    KindBehaviour,
)
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.values.api_errors import ApiError

NOON = 1767268800.0
"""2026-01-01T12:00:00Z."""


class Graceful(KindBehaviour):
    """Ten seconds, unless the options say otherwise."""

    def grace(self, obj, options):
        return 10 if options.grace is None else options.grace


class Orphaning(KindBehaviour):
    dependents = DependentsPolicy.ORPHANED


def at(seconds):
    return f"2026-01-01T12:00:{seconds:02d}Z"


def thing(**metadata):
    return {"metadata": {"name": "x", "uid": "u", "resourceVersion": "7", **metadata}}


def resource(behaviour):
    return ServedResource("apps", "v1", "things", "Thing", behaviour)


def decided(behaviour, obj, *, wall=NOON, **options):
    return deletion_rules.decide_deletion(obj, DeleteOptions(**options), resource(behaviour), wall=wall)


def marked(seconds, grace, **metadata):
    """A thing that is being deleted and goes ``seconds`` after noon."""
    return {"deletionTimestamp": at(seconds), "deletionGracePeriodSeconds": grace, **metadata}


HOLD = {"finalizers": ["example.com/hold"]}

DECISIONS = {
    # behaviour, metadata before, options, fate, whether that is a version of its own, metadata afterwards
    "at once": (KindBehaviour, {}, {}, DeletionFate.REMOVED_NOW, False, {}),
    "grace means nothing to most kinds": (KindBehaviour, {}, {"grace": 5}, DeletionFate.REMOVED_NOW, False, {}),
    "by a finalizer": (KindBehaviour, HOLD, {}, DeletionFate.MARKED_FOR_LATER, True, marked(0, 0, **HOLD)),
    "generation counts": (
        KindBehaviour,
        {**HOLD, "generation": 3},
        {},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 0, generation=4, **HOLD),
    ),
    "by a finalizer, again": (
        KindBehaviour,
        marked(0, 0, **HOLD),
        {},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 0, **HOLD),
    ),
    "finalizer gone meanwhile": (KindBehaviour, marked(0, 0), {}, DeletionFate.REMOVED_NOW, False, marked(0, 0)),
    "graceful": (Graceful, {"generation": 1}, {}, DeletionFate.MARKED_FOR_LATER, True, marked(10, 10, generation=2)),
    "graceful, as asked": (Graceful, {}, {"grace": 3}, DeletionFate.MARKED_FOR_LATER, True, marked(3, 3)),
    "negative grace is one second": (Graceful, {}, {"grace": -7}, DeletionFate.MARKED_FOR_LATER, True, marked(1, 1)),
    "grace 0": (Graceful, {}, {"grace": 0}, DeletionFate.REMOVED_NOW, True, marked(0, 0)),
    "grace 0, but held": (Graceful, HOLD, {"grace": 0}, DeletionFate.MARKED_FOR_LATER, True, marked(0, 0, **HOLD)),
    "again": (Graceful, marked(10, 10), {}, DeletionFate.UNCHANGED, False, marked(10, 10)),
    "again, longer": (Graceful, marked(10, 10), {"grace": 20}, DeletionFate.UNCHANGED, False, marked(10, 10)),
    "again, the same": (Graceful, marked(10, 10), {"grace": 10}, DeletionFate.UNCHANGED, False, marked(10, 10)),
    "again, finalizers do not change any more": (
        Graceful,
        marked(10, 10),
        {"propagation": "Foreground"},
        DeletionFate.UNCHANGED,
        False,
        marked(10, 10),
    ),
    "shorter": (
        Graceful,
        marked(10, 10, generation=2),
        {"grace": 4},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(4, 4, generation=2),
    ),
    "shorter than what has passed": (
        Graceful,
        marked(1, 30),
        {"grace": 4},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 1),
    ),
    "the end is not put into the past": (
        Graceful,
        marked(1, 30),
        {"grace": 0},
        DeletionFate.REMOVED_NOW,
        True,
        marked(0, 0),
    ),
    "shorter and held": (
        Graceful,
        marked(10, 10, **HOLD),
        {"grace": 0},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 0, **HOLD),
    ),
    "grace is over, but held": (
        Graceful,
        marked(0, 0, **HOLD),
        {"grace": 0},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 0, **HOLD),
    ),
    "grace is over": (Graceful, marked(0, 0), {}, DeletionFate.REMOVED_NOW, False, marked(0, 0)),
    "held until later, grace is over": (
        Graceful,
        {"deletionTimestamp": at(9), "deletionGracePeriodSeconds": 0, **HOLD},
        {},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 0, **HOLD),
    ),
    "foreground": (
        KindBehaviour,
        {},
        {"propagation": "Foreground"},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(0, 0, finalizers=["foregroundDeletion"]),
    ),
    "the kind's own way": (Orphaning, {}, {}, DeletionFate.MARKED_FOR_LATER, True, marked(0, 0, finalizers=["orphan"])),
    "not the kind's own way": (Orphaning, {}, {"propagation": "Background"}, DeletionFate.REMOVED_NOW, False, {}),
    "graceful and orphaning": (
        Graceful,
        {},
        {"propagation": "Orphan"},
        DeletionFate.MARKED_FOR_LATER,
        True,
        marked(10, 10, finalizers=["orphan"]),
    ),
}


@pytest.mark.parametrize(("kind", "before", "options", "fate", "own", "after"), DECISIONS.values(), ids=DECISIONS)
def test_decisions(kind, before, options, fate, own, after):
    outcome = decided(kind(), thing(**before), **options)
    assert (outcome.fate, outcome.marked) == (fate, own)
    assert outcome.obj == thing(**after)


def test_webhooks_are_shown_the_grace_that_counts():
    assert decided(Graceful(), thing()).options.grace == 10
    assert decided(Graceful(), thing(), grace=-1).options.grace == 1
    assert decided(KindBehaviour(), thing()).options.grace is None
    assert decided(KindBehaviour(), thing(), grace=-1).options.grace == 1


POLICIES = {
    # present, options, the kind's way, wanted
    "nothing": ([], {}, DependentsPolicy.DELETED, []),
    "kept in their order": (["a/b", "a/a"], {}, DependentsPolicy.DELETED, ["a/b", "a/a"]),
    "orphan": (["a/b"], {"propagation": "Orphan"}, DependentsPolicy.DELETED, ["a/b", "orphan"]),
    "foreground": (["a/b"], {"propagation": "Foreground"}, DependentsPolicy.DELETED, ["a/b", "foregroundDeletion"]),
    "background": (["orphan", "a/b"], {"propagation": "Background"}, DependentsPolicy.ORPHANED, ["a/b"]),
    "one for the other": (
        ["orphan", "a/b"],
        {"propagation": "Foreground"},
        DependentsPolicy.DELETED,
        ["a/b", "foregroundDeletion"],
    ),
    "what an earlier one left": (
        ["foregroundDeletion", "a/b"],
        {},
        DependentsPolicy.ORPHANED,
        ["foregroundDeletion", "a/b"],
    ),
    "orphan, as it is": (["orphan", "a/b"], {}, DependentsPolicy.DELETED, ["orphan", "a/b"]),
    "the old word": ([], {"orphan": True}, DependentsPolicy.DELETED, ["orphan"]),
    "the old word, no": (["orphan"], {"orphan": False}, DependentsPolicy.ORPHANED, []),
    "the kind's way": ([], {}, DependentsPolicy.ORPHANED, ["orphan"]),
    "without any": (["orphan", "a/b"], {"propagation": "Orphan"}, DependentsPolicy.NONE, ["a/b"]),
}


@pytest.mark.parametrize(("present", "options", "way", "wanted"), POLICIES.values(), ids=POLICIES)
def test_finalizers_of_the_garbage_collector(present, options, way, wanted):
    assert deletion_rules.resulting_finalizers(present, DeleteOptions(**options), way) == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"uid": "v"},
            (
                'Operation cannot be fulfilled on Thing.apps "x": the UID in the precondition (v) does not match the UID in'
                " record (u). The object might have been deleted and then recreated"
            ),
        ),
        (
            {"revision": "6"},
            (
                'Operation cannot be fulfilled on Thing.apps "x": the ResourceVersion in the precondition (6) does not match'
                " the ResourceVersion in record (7). The object might have been modified"
            ),
        ),
    ],
)
def test_preconditions(options, message):
    with pytest.raises(ApiError) as caught:
        decided(KindBehaviour(), thing(), **options)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (409, "Conflict", message)
    assert caught.value.details == {"name": "x", "group": "apps", "kind": "Thing"}


class Held(KindBehaviour):
    def keeps_object(self, obj):
        return obj.get("held", False)


@pytest.mark.parametrize(
    ("before", "after", "goes"),
    [
        (marked(0, 0, **HOLD), {}, True),
        ({"deletionTimestamp": at(0), **HOLD}, {}, True),
        (marked(0, 0, **HOLD), HOLD, False),
        (marked(9, 9, **HOLD), {}, False),
        (HOLD, {}, False),
    ],
)
def test_a_change_that_removes_the_last_finalizer(before, after, goes):
    assert deletion_rules.removes_last_hold(thing(**after), thing(**before), Held()) is goes
    assert not deletion_rules.removes_last_hold({**thing(**after), "held": True}, thing(**before), Held())


# -- namespaces --------------------------------------------------------------------------------------------------------


def namespace(**metadata):
    return {**thing(**metadata), "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def test_a_namespace_is_marked_first():
    outcome = decided(NamespaceKind(), namespace(), propagation="Foreground")
    assert (outcome.fate, outcome.marked) == (DeletionFate.MARKED_FOR_LATER, True)
    assert outcome.obj["metadata"] == thing(deletionTimestamp=at(0), finalizers=["foregroundDeletion"])["metadata"]
    assert outcome.obj["status"] == {"phase": "Terminating"}
    assert outcome.options.uid == "u"


def test_a_namespace_that_is_not_empty_stays():
    assert decided(NamespaceKind(), namespace(deletionTimestamp=at(0))).fate is DeletionFate.UNCHANGED
    assert decided(NamespaceKind(), {**namespace(deletionTimestamp=at(0)), "spec": {}}).fate is DeletionFate.REMOVED_NOW


def test_a_namespace_goes_with_its_last_finalizer():
    before = namespace(deletionTimestamp=at(0))
    assert deletion_rules.removes_last_hold({**before, "spec": {}}, before, NamespaceKind())
    assert not deletion_rules.removes_last_hold(before, before, NamespaceKind())


def test_a_namespace_has_its_own_words_for_a_conflict():
    with pytest.raises(ApiError, match='on namespaces "x": Precondition failed: UID in precondition: v, UID in object'):
        decided(NamespaceKind(), namespace(), uid="v")
