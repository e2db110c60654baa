"""``lastcall manifests controller``: what is printed, and that it fits together."""

import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from lastcall.cli.main import cli
from lastcall.errors import InvalidInput
from lastcall.manifests.controller import ControllerChoices, controller_objects
from lastcall.manifests.controller_grants import all_grants
from lastcall.manifests.rbac import ANYWHERE

OURS = "lastcall-controller"


def printed(*arguments):
    result = CliRunner().invoke(cli, ["manifests", "controller", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return list(yaml.safe_load_all(result.output))


def of_kind(kind, found):
    return [one for one in found if one["kind"] == kind]


def test_everything_is_there_in_the_order_in_which_it_can_be_made():
    assert [one["kind"] for one in printed()] == [
        "Namespace",
        "Namespace",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Role",
        "RoleBinding",
        "Role",
        "RoleBinding",
        "Lease",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "Deployment",
    ]


def test_nothing_names_another_object():
    """Neither anchors nor aliases."""
    text = CliRunner().invoke(cli, ["manifests", "controller"]).output
    assert "&id" not in text
    assert text == CliRunner().invoke(cli, ["manifests", "controller"]).output


def test_the_choices_are_heeded():
    found = printed("--namespace=ha", "--image=registry.example/lastcall@sha256:00", "--replicas=3")
    assert [one["metadata"]["name"] for one in of_kind("Namespace", found)] == [
        "ha",
        "lastcall-system",
        "lastcall-nodes",
    ]
    places = [(one["kind"], one["metadata"]["namespace"]) for one in found if "namespace" in one["metadata"]]
    assert {place for kind, place in places if not kind.startswith("Role")} == {"ha"}
    assert {place for kind, place in places if kind == "Role"} == {"ha", "kube-node-lease", "lastcall-nodes"}
    [deployment] = of_kind("Deployment", found)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert (deployment["spec"]["replicas"], container["image"]) == (3, "registry.example/lastcall@sha256:00")
    assert "--lease-namespace=ha" in container["args"]
    assert {one["namespace"] for binding in found for one in binding.get("subjects", [])} == {"ha"}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"namespace": "A b"}, '--namespace: "A b": must be small letters, digits and -, at most 63'),
        (
            {"namespace": "lastcall-nodes"},
            "--namespace: lastcall-nodes: agents write there, so no election may be held there",
        ),
        ({"image": ""}, '--image: "": must be the name of an image'),
        ({"image": "x\n- y"}, "--image: "),
        ({"replicas": -1}, "--replicas: -1: must be 0 or more"),
        ({"attach_detach": "both"}, '--attach-detach: "both": must be external or own'),
        ({"guard_withdrawal": 9.0}, "--guard-withdrawal: 9s: must be 10s or more, or never"),
    ],
)
def test_what_means_nothing_is_refused(choice, said):
    with pytest.raises(InvalidInput) as caught:
        ControllerChoices(**choice)
    assert caught.value.violations[0].startswith(said)


def test_a_wrong_choice_is_exit_code_2():
    line = [sys.executable, "-m", "lastcall", "manifests", "controller", "--replicas=-1"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "lastcall: manifests: --replicas: -1: must be 0 or more\n",
    )


def test_each_role_is_bound_to_the_controller_alone():
    found = controller_objects(ControllerChoices())
    account = {"kind": "ServiceAccount", "name": OURS, "namespace": "lastcall-system"}
    for kind in ("Role", "ClusterRole"):
        roles, bindings = of_kind(kind, found), of_kind(f"{kind}Binding", found)
        where = [one["metadata"].get("namespace") for one in roles]
        assert [one["metadata"].get("namespace") for one in bindings] == where
        assert [one["roleRef"]["kind"] for one in bindings] == [kind] * len(roles)
        assert [one["subjects"] for one in bindings] == [[account]] * len(roles)


def test_the_roles_are_the_grants():
    found = controller_objects(ControllerChoices())
    told = [
        (one["metadata"].get("namespace", ANYWHERE), rule["apiGroups"], rule["resources"], rule["verbs"])
        for one in [*of_kind("ClusterRole", found), *of_kind("Role", found)]
        for rule in one["rules"]
    ]
    grants = all_grants("lastcall-system", detach=False)
    assert told == [(one.namespace, [one.group], [one.resource], list(one.verbs)) for one in grants]
    assert all(one.why for one in grants)


def test_secrets_can_be_read_in_its_own_namespace_alone_and_nothing_has_a_wildcard():
    grants = all_grants("ha", detach=True)
    assert [(one.namespace, one.verbs) for one in grants if one.resource == "secrets"] == [("ha", ("get",))]
    assert not any("*" in (one.resource, one.group, *one.verbs) for one in grants)


@pytest.mark.parametrize(
    ("arguments", "allowed", "told"),
    [
        ((), ["list", "watch"], False),
        (("--attach-detach=external",), ["list", "watch"], False),
        (("--attach-detach=own",), ["get", "list", "watch", "delete"], True),
    ],
)
def test_attachments_may_be_deleted_by_a_controller_alone_that_detaches_volumes_itself(arguments, allowed, told):
    found = printed(*arguments)
    [role], [deployment] = of_kind("ClusterRole", found), of_kind("Deployment", found)
    assert [one["verbs"] for one in role["rules"] if one["resources"] == ["volumeattachments"]] == [allowed]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert ("--attach-detach=own" in container["args"]) is told


@pytest.mark.parametrize(
    ("arguments", "told", "seconds"),
    [
        ((), None, 60.0),
        (("--guard-withdrawal=1m",), None, 60.0),
        (("--guard-withdrawal=2m",), "--guard-withdrawal=2m0s", 120.0),
        (("--guard-withdrawal=never",), "--guard-withdrawal=never", float("inf")),
    ],
)
def test_when_the_guard_s_webhooks_are_withdrawn(arguments, told, seconds):
    [deployment] = of_kind("Deployment", printed(*arguments))
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert [one for one in container["args"] if "guard" in one] == ([told] if told else [])
    verb, *given = container["args"]
    command = cli.get_command(None, verb)
    params = command.make_context(verb, [one.replace("$(POD_IP)", "fd00::7") for one in given]).params
    assert params["guard_withdrawal"] == seconds


@pytest.mark.parametrize("value", ["9s", "soon", "Never", "-1m"])
def test_a_time_that_cannot_be_is_refused(value):
    for command in (["controller"], ["manifests", "controller"]):
        result = CliRunner().invoke(cli, [*command, f"--guard-withdrawal={value}"])
        assert result.exit_code == 2
        assert "--guard-withdrawal" in result.output


def test_of_webhook_configurations_the_guard_s_alone_may_be_written_and_none_made():
    [grant] = [one for one in all_grants("ha", detach=True) if one.resource == "validatingwebhookconfigurations"]
    assert (grant.names, grant.verbs) == (("lastcall-guard",), ("get", "update"))


def test_the_pods_are_found_by_what_chooses_them():
    [deployment], [budget] = (
        of_kind(kind, controller_objects(ControllerChoices())) for kind in ("Deployment", "PodDisruptionBudget")
    )
    pod = deployment["spec"]["template"]
    [apart] = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for chooser in (deployment["spec"]["selector"], budget["spec"]["selector"], apart["labelSelector"]):
        assert chooser["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_the_pods_keep_to_the_restricted_standard():
    found = controller_objects(ControllerChoices())
    [deployment] = of_kind("Deployment", found)
    other = controller_objects(ControllerChoices(namespace="ha"))
    demands = [one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] for one in of_kind("Namespace", other)]
    assert demands == ["restricted", "privileged", "restricted"], "agents, which need more, are in lastcall-system"
    spec = deployment["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert spec["shareProcessNamespace"] is True, "lastcall would be process 1, and reaps nothing that is not its own"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize("who", ["external", "own"])
def test_the_program_knows_what_it_is_started_with(who):
    [deployment] = of_kind("Deployment", controller_objects(ControllerChoices(attach_detach=who)))
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    verb, *arguments = container["args"]
    command = cli.get_command(None, verb)
    told = command.make_context(verb, [one.replace("$(POD_IP)", "fd00::7") for one in arguments]).params
    assert (told["lease_namespace"], told["attach_detach"]) == ("lastcall-system", who)
    assert told["metrics_bind_address"] == ("fd00::7", container["ports"][0]["containerPort"])
