"""The rules for owner references and finalizers on the lab's API server, in Kubernetes' words."""

import pytest

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import object_meta

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}


def obj(**metadata):
    return {"metadata": {"name": "x", "namespace": "n", "uid": "u", **metadata}}


def said(causes):
    return [f"{cause.field}: {cause.message}" for cause in causes]


def created(**metadata):
    return said(object_meta.check_metadata(obj(**metadata), validate_name=name_rules.subdomain_error, namespaced=True))


def changed(before, **metadata):
    return said(object_meta.check_metadata_update(obj(**metadata), obj(**before)))


OWNERS = {
    "good": ([OWNER, {**OWNER, "controller": True, "blockOwnerDeletion": True}], []),
    "core": ([{**OWNER, "apiVersion": "v1", "kind": "Node"}], []),
    "empty": (
        [{}],
        [
            'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
            'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
            'metadata.ownerReferences.name: Invalid value: "": must not be empty',
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ],
    ),
    "no version": (
        [{**OWNER, "apiVersion": "apps/"}],
        ['metadata.ownerReferences.apiVersion: Invalid value: "apps/": version must not be empty'],
    ),
    "an event": (
        [{**OWNER, "apiVersion": "v1", "kind": "Event"}],
        [
            (
                'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"r","uid":"u"}:'
                " /v1, Kind=Event is disallowed from being an owner"
            ),
        ],
    ),
    "two controllers": (
        [{**OWNER, "controller": True}, {**OWNER, "name": "s", "controller": True}],
        [
            (
                'metadata.ownerReferences: Invalid value: [{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u",'
                '"controller":true},{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"s","uid":"u","controller":true}]:'
                ' Only one reference can have Controller set to true. Found "true" in references for'
                " ReplicaSet/r and ReplicaSet/s"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("owners", "causes"), OWNERS.values(), ids=OWNERS)
def test_owner_references(owners, causes):
    assert created(ownerReferences=owners) == causes
    assert changed({}, ownerReferences=owners) == causes


def test_finalizers():
    assert created(finalizers=["orphan", "example.com/a"]) == []
    assert created(finalizers=["orphan", "foregroundDeletion"]) == [
        (
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion'
            " cannot be both set"
        )
    ]
    (wrong,) = created(finalizers=["-"])
    assert wrong.startswith('metadata.finalizers: Invalid value: "-": name part must consist of')


def test_none_comes_while_it_goes():
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/a"]}
    assert changed(ending, **{**ending, "finalizers": []}) == []
    assert changed(ending, **{**ending, "finalizers": ["a/c", "a/b", "a/a"]}) == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new"
            ' finalizers []string{"a/b", "a/c"}'
        )
    ]
    assert changed({}, finalizers=["a/b"]) == []
