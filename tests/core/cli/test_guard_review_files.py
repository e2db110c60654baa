"""``lastcall guard review`` as a black box: files and reviews of any shape, exit codes, the configuration."""

import json

import pytest
from support.guard.review_files import (
    CLUSTER,
    GONE,
    HELD,
    POD,
    changed,
    deletion,
    entry,
    eviction,
    obj,
    outcome,
    review_command,
    state_with,
    user,
)


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    return review_command(tmp_path, monkeypatch, capsys)


ITEMS = CLUSTER.partition("items:")[2]
LOOSE = "\n---\n".join(json.dumps(one) for one in json.loads(state_with())["items"])
STATES = {
    "several documents": LOOSE,
    "JSON after JSON": LOOSE.replace("\n---\n", "\n"),
    "a List in a List": json.dumps(
        {"kind": "List", "items": [json.loads(state_with()), {"kind": "List", "items": None}]}
    ),
    "a byte order mark": ("\ufeff" + state_with()).encode(),
    "UTF-16": state_with().encode("utf-16"),
    "lists of single kinds, as the API has them": "\n".join(
        json.dumps({"kind": f"{one['kind']}List", "items": [changed(one, {"kind": GONE, "apiVersion": GONE})]})
        for one in json.loads(state_with())["items"]
    ),
    "kinds that nobody knows": state_with(
        obj("AllowList", "a", "example.com/v1", spec={"replicas": "many"}), obj("ConfigMap", "c", data={"a": "b"})
    ),
    "objects without names": json.dumps(
        {"kind": "List", "items": [*json.loads(state_with())["items"], {"kind": "Widget", "metadata": None}]}
    ),
    "null where lists are": state_with(obj("Node", "n1", spec={"taints": None}), entries=()),
    "an empty status": state_with().replace('"provider": {"redis": {}}}', '"provider": {"redis": {}}}, "status": {}'),
    "without Namespaces": state_with(without=["Namespace"]),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize("review", [deletion(), eviction()], ids=["delete", "evict"])
def test_a_state_of_any_shape_is_read(ask, review, state):
    assert outcome(ask(review, state)) == HELD


def deep(levels):
    return b"[" * levels + b"]" * levels


LINE = json.dumps(deletion()).encode()
UNREADABLE = {
    "nothing": b"",
    "white space": b" \n",
    "text": b"garbage",
    "half a review": LINE[:-20],
    "a comma too much": LINE[:-1] + b",}",
    "two reviews": LINE + LINE,
    "YAML": b"kind: AdmissionReview\napiVersion: admission.k8s.io/v1\n",
    "null": b"null",
    "a list": b"[" + LINE + b"]",
    "too deep": deep(100_000),
    "a review that is too deep": LINE.replace(b'"dryRun": false', b'"dryRun": ' + deep(100_000)),
    "not UTF-8": LINE.replace(b"ann", b"\xff"),
    "a byte order mark": b"\xef\xbb\xbf" + LINE,
    "another kind": json.dumps(POD).encode(),
    "another version": LINE.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v2"),
    "no request": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    "a request that is text": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":"x"}',
    "no uid": json.dumps(deletion(uid=GONE)).encode(),
    "an empty uid": json.dumps(deletion(uid="")).encode(),
    "a uid that is a number": json.dumps(deletion(uid=7)).encode(),
    "no operation": json.dumps(deletion(operation=GONE)).encode(),
    "no resource": json.dumps(deletion(resource=GONE)).encode(),
    "a name that is a number": json.dumps(deletion(name=7)).encode(),
    "a user that is a list": json.dumps(deletion(userInfo=["ann"])).encode(),
    "labels with numbers": json.dumps(deletion(oldObject__metadata__labels={"app": 7})).encode(),
    "a pod that is text": json.dumps(deletion(oldObject="db-0")).encode(),
    "a pod without metadata": json.dumps(deletion(oldObject__metadata=GONE)).encode(),
    "an eviction that is a number": json.dumps(eviction(object=7)).encode(),
    "a grace that is text": json.dumps(deletion(options__gracePeriodSeconds="30")).encode(),
    "many faults": json.dumps(deletion(name=7, namespace=8, userInfo=9, dryRun="no")).encode(),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_a_review_that_cannot_be_read_is_exit_code_2_and_one_sentence(ask, data):
    code, out, err = ask(data)
    assert (code, out) == (2, "")
    assert err.startswith("lastcall: standard input: ")
    assert err.count("\n") == 1
    assert len(err) < 600


def test_all_faults_are_in_the_sentence(ask):
    said = ask(UNREADABLE["many faults"])[2]
    for field in ("request.name: 7", "request.namespace: 8", "request.userInfo: 9", 'request.dryRun: "no"'):
        assert field in said


@pytest.mark.parametrize(
    "changes",
    [
        {"oldObject__metadata__annotations": {"big": "x" * 5 * 2**20}},
        {"oldObject__spec__containers": [{"name": f"c{number}", "image": "i" * 1000} for number in range(5000)]},
        {"userInfo": {"username": "ann", "extra": {f"k{number}": ["v" * 1000] for number in range(5000)}}},
    ],
)
def test_five_mebibytes_are_answered(ask, changes):
    assert outcome(ask(deletion(**changes))) == HELD


def test_what_is_larger_than_any_review_is_not_read(ask):
    code, out, err = ask(b'{"a":"' + b"x" * 17 * 2**20 + b'"}')
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_some_hundred_levels_in_what_nobody_reads_are_answered(ask):
    value = json.loads(deep(300))
    assert outcome(ask(deletion(oldObject__spec__future=value))) == HELD


BROKEN = {
    "empty": "",
    "null": "null",
    "text": "a: [",
    "no list": "kind: ConfigMap\napiVersion: v1\n",
    "no items": "kind: List\napiVersion: v1\n",
    "items that are no objects": "{kind: List, items: [7]}",
    "a pod twice": json.dumps({"kind": "List", "items": [POD, POD]}),
    "a policy without a provider": "{apiVersion: lastcall.dev/v1alpha1, kind: GuardPolicy, metadata: {name: a}, spec: {}}",
    "a state of a pod that does not exist": state_with(entries=[entry("Going")]),
    "a request that does not exist": state_with(entries=[entry("Ready", request="Going")]),
    "a time without its zone": state_with(entries=[entry("Ready", verifiedAt="2026-11-28T12:00:00")]),
    "too deep": "[" * 100_000,
    "too deep as YAML": "- " * 5_000,
}


@pytest.mark.parametrize("state", BROKEN.values(), ids=BROKEN)
def test_a_state_that_cannot_be_read_is_exit_code_2(ask, state):
    code, out, err = ask(deletion(), state)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "/state: " in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--state", "/nowhere/state"], "No such file or directory"),
        (["--state", "-"], "standard input has the review"),
        (["--config", "-"], "standard input has the review"),
        (["--config", "/nowhere/config"], "No such file or directory"),
        (["--now", "noon"], "is not an RFC 3339 time"),
        (["--now", "2026-11-28T12:00:00"], "is not an RFC 3339 time"),
    ],
)
def test_what_else_is_wrong_is_exit_code_2(ask, more, said):
    code, out, err = ask(deletion(), CLUSTER, *more)
    assert (code, out) == (2, "")
    assert said in err


# -- the configuration -------------------------------------------------------------------------------------------------

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: GuardConfiguration\n"
READY = state_with(entries=[entry("Ready", verifiedAt="2026-11-28T11:59:40Z")])


@pytest.mark.parametrize(
    ("text", "review", "state", "expected"),
    [
        ("", deletion(), CLUSTER, HELD),
        ("readySeconds: 20", deletion(), READY, (True, "ready")),
        ("readySeconds: 19.5", deletion(), READY, (False, "ready")),
        ("unguardedNamespaces: [shop]", deletion(), CLUSTER, (True, "not-guarded")),
        ("unguardedNamespaces: [shop]", eviction(), CLUSTER, (True, "not-guarded")),
        ("unguardedNamespaces: [other]", eviction(), CLUSTER, HELD),
        ("namespace: shop", eviction(), CLUSTER, (True, "not-guarded")),
        (
            "namespace: ops",
            eviction(userInfo=user("system:serviceaccount:ops:lastcall-guard-releaser")),
            CLUSTER,
            (True, "releaser"),
        ),
        (
            "namespace: ops",
            eviction(userInfo=user("system:serviceaccount:lastcall-system:lastcall-guard-releaser")),
            CLUSTER,
            HELD,
        ),
    ],
)
def test_the_configuration_changes_answers(ask, tmp_path, text, review, state, expected):
    path = tmp_path / "guard.yaml"
    path.write_text(HEAD + text)
    assert outcome(ask(review, state, "--config", str(path))) == expected


def test_a_refusal_names_the_administrators_command(ask, tmp_path):
    path = tmp_path / "guard.yaml"
    path.write_text(HEAD + "statusCommand: held {pod} -n {namespace} -p {policy}")
    response = json.loads(ask(deletion(), CLUSTER, "--config", str(path))[1])["response"]
    assert response["status"]["message"].endswith("; see: held db-0 -n shop -p db")
