"""The guard's objects: what its choices change."""

import pytest

from lastcall.errors import InvalidInput
from lastcall.manifests.guard import GuardChoices, guard_objects
from lastcall.model.guard_config import GuardConfig, parse_guard_config

HEAD = b"apiVersion: lastcall.dev/v1alpha1\nkind: GuardConfiguration\n"


def by_kind(choices):
    return {one["kind"]: one for one in guard_objects(choices)}


def test_a_configuration_is_a_file_of_the_guards_pods():
    found = by_kind(GuardChoices(config=HEAD + b"readySeconds: 20"))
    config_map, pod = found["ConfigMap"], found["Deployment"]["spec"]["template"]
    [(name, text)] = config_map["data"].items()
    assert parse_guard_config(text.encode(), name) == GuardConfig(ready_seconds=20)
    container = pod["spec"]["containers"][0]
    [mount] = container["volumeMounts"]
    assert f"--config={mount['mountPath']}/{name}" in container["args"]
    assert pod["spec"]["volumes"] == [{"name": mount["name"], "configMap": {"name": config_map["metadata"]["name"]}}]


def test_the_authority_of_the_api_server_is_a_file_of_the_guards_pods():
    found = by_kind(GuardChoices(client_ca_secret="clients"))["Deployment"]["spec"]["template"]["spec"]
    [container], [volume] = found["containers"], found["volumes"]
    [mount] = container["volumeMounts"]
    assert f"--client-ca-file={mount['mountPath']}/ca.crt" in container["args"]
    assert volume == {"name": mount["name"], "secret": {"secretName": "clients"}}


def test_another_configuration_starts_other_pods():
    texts = (HEAD + b"readySeconds: 20", HEAD + b"readySeconds: 21")
    first, second = (by_kind(GuardChoices(config=one))["Deployment"]["spec"]["template"] for one in texts)
    assert first["metadata"] != second["metadata"]


def test_without_a_configuration_there_is_no_file():
    found = by_kind(GuardChoices())
    assert "ConfigMap" not in found
    assert "volumes" not in found["Deployment"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + b"readySeconds: 1", "--config: readySeconds: 1: must be a number >= 10.0"),
        (HEAD + b"namespace: ops", 'namespace: "ops": must be lastcall-system, where these objects are'),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(text, said):
    with pytest.raises(InvalidInput, match=said):
        GuardChoices(config=text)


def test_a_name_that_no_secret_has_is_refused():
    with pytest.raises(InvalidInput, match='--client-ca-secret: "a/b": must be the name of a Secret'):
        GuardChoices(client_ca_secret="a/b")
