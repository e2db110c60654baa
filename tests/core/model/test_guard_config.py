"""The guard's configuration file: its defaults, what it changes, and errors with field, value and rule."""

import pytest

from lastcall.errors import InvalidInput
from lastcall.model.guard_config import DEFAULTS, GuardConfig, parse_guard_config

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: GuardConfiguration\n"


def read(text):
    return parse_guard_config(text.encode(), "f")


def test_all_fields_are_optional():
    assert read(HEAD) == DEFAULTS
    assert DEFAULTS.releaser == "system:serviceaccount:lastcall-system:lastcall-guard-releaser"
    assert DEFAULTS.agent_user == "system:serviceaccount:lastcall-system:lastcall-agent"


def test_each_field_is_read():
    found = read(HEAD + "namespace: ops\nunguardedNamespaces: [a, b]\nreadySeconds: 30\nstatusCommand: see {pod}\n")
    assert found == GuardConfig(
        namespace="ops", unguarded_namespaces=("a", "b"), ready_seconds=30, status_command="see {pod}"
    )
    assert found.releaser == "system:serviceaccount:ops:lastcall-guard-releaser"


def test_a_null_is_the_default():
    assert read(HEAD + "readySeconds:\nunguardedNamespaces: null\nstatusCommand: null\n") == DEFAULTS


@pytest.mark.parametrize(
    ("namespace", "may"),
    [("shop", True), ("kube-system", False), ("lastcall-system", False), ("ops", False), ("a", False)],
)
def test_which_namespaces_may_be_guarded(namespace, may):
    assert read(HEAD + "namespace: ops\nunguardedNamespaces: [a]").may_guard(namespace) is may


def test_the_command_is_about_one_pod():
    said = DEFAULTS.format_command(policy="db", namespace="shop", pod="db-0")
    assert said == "kubectl get guardpolicy db --namespace shop -o yaml"
    twice = GuardConfig(status_command="a {pod} {pod} {policy}")
    assert twice.format_command(policy="{pod}", namespace="n", pod="p") == "a p p {pod}", "no value is read again"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f: document: empty: expected one GuardConfiguration"),
        ("[]", "f: document: []: expected one GuardConfiguration"),
        (HEAD + "---\n" + HEAD, "f: document: 2 documents: expected one GuardConfiguration"),
        ("kind: AgentConfiguration", 'f: kind: "AgentConfiguration": must be GuardConfiguration'),
        (
            "kind: GuardConfiguration",
            "f: apiVersion: missing: must be lastcall.dev/v1alpha1 for kind GuardConfiguration",
        ),
        (HEAD + "readySeconds: 2", "f: readySeconds: 2: must be a number >= 10.0"),
        (HEAD + "readySeconds: 61", "f: readySeconds: 61: must be a number <= 60.0"),
        (HEAD + "readySeconds: 10s", 'f: readySeconds: "10s": must be a number, not text'),
        (HEAD + "readySecond: 9", "f: readySecond: 9: unknown field, did you mean readySeconds?"),
        (HEAD + "unguardedNamespaces: shop", 'f: unguardedNamespaces: "shop": must be a list, not text'),
        (
            HEAD + "unguardedNamespaces: [Shop]",
            "f: unguardedNamespaces[0]: \"Shop\": must be text matching regex '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'",
        ),
        (
            HEAD + "namespace: ''",
            "f: namespace: \"\": must be text matching regex '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'",
        ),
        (
            HEAD + "statusCommand: get {name}",
            'f: statusCommand: "get {name}": may have {policy}, {namespace}, {pod}, and no other braces',
        ),
        (
            HEAD + "statusCommand: get {pod",
            'f: statusCommand: "get {pod": may have {policy}, {namespace}, {pod}, and no other braces',
        ),
        (HEAD + 'statusCommand: "a\\nb"', 'f: statusCommand: "a\\nb": must be one line of printable text'),
        (HEAD + "statusCommand: ' '", 'f: statusCommand: " ": must be one line of printable text'),
    ],
)
def test_an_error_has_field_value_and_rule(text, said):
    with pytest.raises(InvalidInput) as raised:
        read(text)
    assert str(raised.value) == said


def test_all_errors_are_told_at_once():
    with pytest.raises(InvalidInput) as raised:
        read(HEAD + "readySeconds: 1\nnamespace: A\nother: 1\nstatusCommand: '{'\n")
    assert len(raised.value.violations) == 4
