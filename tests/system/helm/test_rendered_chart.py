"""The chart as the real Helm renders it: the objects of ``lastcall manifests``, valid for Kubernetes, by values that fit."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.common.libraries import need_library
from support.kube import helm

from lastcall import __version__
from lastcall.cli.main import cli
from lastcall.graceful import config
from lastcall.manifests.agent import AgentChoices, agent_objects
from lastcall.manifests.controller import ControllerChoices, controller_objects
from lastcall.manifests.guard import GuardChoices, guard_objects, guarded_namespace_objects
from lastcall.manifests.pod_policies import pod_policy_objects
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.names import ALL

need_library("helm_python", "Helm as a library exists for Linux on x86-64 alone")
pytestmark = pytest.mark.xdist_group("helm")

ROOT = Path(__file__).parents[3]
KUBERNETES = "1.37"
ON = {"enabled": True}
ALL_ON = {
    "agent": {"metrics": {"onNodeAddress": True}, "seLinuxOptions": {"type": "spc_t"}, "watchdogPeers": True},
    "guard": ON,
    "podPolicies": {"enabled": True, "settleSeconds": 5},
    "monitoring": {"podMonitor": ON, "rules": ON, "dashboard": ON},
    "imagePullSecrets": [{"name": "registry"}],
}
OF_THE_OPERATOR = ("PodMonitor", "PrometheusRule")


@pytest.fixture(scope="module")
def everything():
    """The objects with all that can be switched on."""
    return helm.objects(helm.render(ALL_ON))


def key(obj):
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def without_marks(obj):
    """What Helm adds is taken away: its labels, the policy that keeps definitions, the sum of the configuration."""
    metadata = {**obj["metadata"]}
    labels = {
        name: text
        for name, text in metadata.pop("labels", {}).items()
        if name not in ("app.kubernetes.io/managed-by", "helm.sh/chart")
    }
    annotations = {
        name: text for name, text in metadata.pop("annotations", {}).items() if name != "helm.sh/resource-policy"
    }
    bare = {**obj, "metadata": metadata | ({"labels": labels} if labels else {})}
    if annotations:
        bare["metadata"]["annotations"] = annotations
    if obj["kind"] == "DaemonSet":
        [name] = bare["spec"]["template"]["metadata"].pop("annotations")
        assert name == "checksum/config"
    return bare


@pytest.mark.parametrize(
    ("values", "agent", "controller"),
    [
        ({}, {"own_node": True}, {}),
        (
            {
                "agent": {
                    "ownNodePolicy": False,
                    "watchdogPeers": True,
                    "metrics": {"onNodeAddress": True},
                    "containerRuntimeEndpoint": "unix:///run/crio/crio.sock",
                    "image": {"repository": "registry.example/agent", "tag": "7"},
                },
                "controller": {
                    "replicas": 3,
                    "attachDetach": "own",
                    "guardWithdrawal": "2m0s",
                    "image": {"repository": "registry.example/lastcall", "digest": f"sha256:{'a' * 64}"},
                },
            },
            {
                "peers": True,
                "node_metrics": True,
                "endpoint": "unix:///run/crio/crio.sock",
                "image": "registry.example/agent:7",
            },
            {
                "replicas": 3,
                "attach_detach": "own",
                "guard_withdrawal": 120.0,
                "image": f"registry.example/lastcall@sha256:{'a' * 64}",
            },
        ),
    ],
)
def test_it_holds_the_objects_of_the_manifests(values, agent, controller):
    printed = [*agent_objects(AgentChoices(**agent)), *controller_objects(ControllerChoices(**controller))]
    expected = {key(one): one for one in printed}
    assert expected.pop(("Namespace", "", helm.NAMESPACE)), "Helm's user makes the namespace of the release"
    rendered = {key(one): without_marks(one) for one in helm.objects(helm.render(values))}
    assert sorted(rendered) == sorted(expected)
    for name, obj in expected.items():
        assert rendered[name] == obj, name


@pytest.mark.parametrize(
    ("values", "choices"),
    [
        ({}, {}),
        (
            {"replicas": 3, "failurePolicy": "Fail", "image": {"repository": "registry.example/guard", "tag": "7"}},
            {"replicas": 3, "failure_policy": "Fail", "image": "registry.example/guard:7"},
        ),
        *(({"evictionRequests": mode.value}, {"eviction_requests": mode}) for mode in EvictionRequestMode),
        (
            {"config": {"readySeconds": 20, "unguardedNamespaces": ["rook-ceph"]}, "clientCASecret": "clients"},
            {
                "client_ca_secret": "clients",
                "config": b"{apiVersion: lastcall.dev/v1alpha1, kind: GuardConfiguration, readySeconds: 20,"
                b" unguardedNamespaces: [rook-ceph]}",
            },
        ),
    ],
)
def test_the_guard_is_that_of_the_manifests(values, choices):
    only = {"agent": {"enabled": False}, "controller": {"enabled": False}}
    rendered = {key(one): without_marks(one) for one in helm.objects(helm.render({**only, "guard": ON | values}))}
    expected = {key(one): one for one in guard_objects(GuardChoices(**choices))}
    assert expected.pop(("Namespace", "", helm.NAMESPACE)), "Helm's user makes the namespace of the release"
    hook = rendered.pop(("ConfigMap", helm.NAMESPACE, "lastcall-guard-uninstall"))
    assert hook["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete", "which kubectl creates by hand"
    of_others = {key(one) for one in helm.objects(helm.render(only))}
    assert sorted(name for name in rendered if name not in of_others) == sorted(expected)
    for name, obj in expected.items():
        assert rendered[name] == obj, name


def test_the_webhook_for_new_pods_is_that_of_the_manifests():
    values = {"guard": ON, "podPolicies": {"webhook": True, "settleSeconds": 5}}
    rendered = {key(one): without_marks(one) for one in helm.objects(helm.render(values))}
    expected = {key(one): one for one in guard_objects(GuardChoices(settle_seconds=5))}
    assert ("MutatingWebhookConfiguration", "", "lastcall-settle") in expected
    for name, obj in expected.items():
        assert name[0] == "Namespace" or rendered[name] == obj, name


def test_the_webhook_for_new_pods_needs_the_guard():
    with pytest.raises(helm.HelmFailed, match=r"podPolicies.webhook: the guard answers .* set guard.enabled=true"):
        helm.render({"podPolicies": {"webhook": True}})


def test_the_policies_for_pods_are_those_of_the_manifests():
    values = {"podPolicies": {"enabled": True, "settleSeconds": 5}}
    rendered = {key(one): without_marks(one) for one in helm.objects(helm.render(values))}
    for obj in pod_policy_objects(seconds=5):
        assert rendered[key(obj)] == obj


def test_the_controller_alone_may_be_in_another_namespace():
    values = {"agent": {"enabled": False}}
    rendered = {key(one): without_marks(one) for one in helm.objects(helm.render(values, namespace="ha"))}
    expected = {key(one): one for one in controller_objects(ControllerChoices(namespace="ha"))}
    assert {name: expected[name] for name in rendered} == rendered
    assert {name for name in expected if name not in rendered} == {
        ("Namespace", "", "ha"),
        ("Namespace", "", helm.NAMESPACE),
    }


def test_the_guard_is_in_one_namespace_alone():
    values = {"agent": {"enabled": False}, "guard": ON}
    with pytest.raises(helm.HelmFailed, match="namespace ha: the guard has to be in lastcall-system"):
        helm.render(values, namespace="ha")


@pytest.mark.parametrize(
    ("namespace", "said"),
    [
        ("ha", "namespace ha: agents have to be in lastcall-system: install into it, or set agent.enabled=false"),
        ("lastcall-nodes", "namespace lastcall-nodes: agents write there, so no election may be held there"),
    ],
)
def test_a_namespace_that_cannot_be_is_refused(namespace, said):
    with pytest.raises(helm.HelmFailed, match=re.escape(said)):
        helm.render(namespace=namespace)


@pytest.mark.parametrize("values", [{}, ALL_ON], ids=["defaults", "everything"])
def test_lint_finds_nothing(values):
    report = helm.call("lint", helm.CHART, values, strict=True, namespace=helm.NAMESPACE)
    assert report["errors"] == []
    assert [one for one in report["messages"] if "icon" not in one["error"]] == []


def test_every_object_is_valid_for_kubernetes(everything):
    validate = pytest.importorskip("kubernetes_validate").validate
    with pytest.raises(Exception, match="hostNetwrk"):
        validate(
            {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "hostNetwrk": True}}, KUBERNETES, strict=True
        )
    printed = [
        *agent_objects(AgentChoices(own_node=True)),
        *controller_objects(ControllerChoices()),
        *pod_policy_objects(),
        *guard_objects(GuardChoices(settle_seconds=2)),
        *guarded_namespace_objects("shop"),
    ]
    for obj in (*everything, *printed):
        if obj["kind"] not in OF_THE_OPERATOR:
            assert validate(obj, KUBERNETES, strict=True) == KUBERNETES, key(obj)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"agent": {"imagee": {}}}, "at '/agent': additional properties 'imagee' not allowed"),
        ({"controller": {"replicas": -1}}, "at '/controller/replicas': minimum: got -1, want 0"),
        (
            {"controller": {"mode": "observe"}},
            "at '/controller/mode': value must be one of 'Observe', 'TaintOnly', 'Enforce'",
        ),
        (
            {"controller": {"attachDetach": "both"}},
            "at '/controller/attachDetach': value must be one of 'external', 'own'",
        ),
        (
            {"agent": {"config": {"mode": "observe"}}},
            "at '/agent/config/mode': value must be one of 'Observe', 'Enforce'",
        ),
        (
            {"agent": {"config": {"shutdownGracePeriod": 30}}},
            "at '/agent/config/shutdownGracePeriod': got number, want string",
        ),
        (
            {"agent": {"containerRuntimeEndpoint": "/run/x"}},
            "at '/agent/containerRuntimeEndpoint': '/run/x' does not match",
        ),
        ({"controller": {"guardWithdrawal": "soon"}}, "at '/controller/guardWithdrawal': 'soon' does not match"),
        (
            {"guard": {"failurePolicy": "ignore"}},
            "at '/guard/failurePolicy': value must be one of 'Ignore', 'Fail'",
        ),
        ({"guard": {"config": {"readySeconds": 2}}}, "at '/guard/config/readySeconds': minimum: got 2, want 10"),
        ({"guard": {"config": {"namespace": "ha"}}}, "at '/guard/config/namespace': value must be 'lastcall-system'"),
        ({"agent": {"image": {"digest": "sha256:1"}}}, "at '/agent/image/digest': 'sha256:1' does not match"),
        ({"agent": {"kubeletUnit": "kubelet"}}, "at '/agent/kubeletUnit': 'kubelet' does not match"),
    ],
)
def test_a_bad_value_is_refused_by_name(values, said):
    with pytest.raises(helm.HelmFailed) as caught:
        helm.call("validate_schema", helm.CHART, values)
    assert said in str(caught.value)
    with pytest.raises(helm.HelmFailed):
        helm.render(values)


def test_the_schema_names_every_value():
    """What values.yaml has and the schema does not, or the other way round, is a mistake in one of them."""

    def paths(schema, prefix=""):
        for name, inner in schema.get("properties", {}).items():
            if inner.get("additionalProperties") is False:
                yield from paths(inner, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}"

    def given(values, schema, prefix=""):
        for name, value in values.items():
            inner = schema["properties"][name]
            if inner.get("additionalProperties") is False:
                yield from given(value, inner, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}"

    schema = json.loads((helm.CHART / "values.schema.json").read_text())
    values = yaml.safe_load((helm.CHART / "values.yaml").read_text())
    optional = {"global", *(path for path in paths(schema) if ".resources." in path or ".seLinuxOptions." in path)}
    optional |= {path for path in paths(schema) if path.startswith("guard.config.")}
    optional |= {"agent.appArmorProfile.localhostProfile"}
    assert set(paths(schema)) - optional == set(given(values, schema)) - optional


def test_what_is_generated_is_current():
    line = [sys.executable, ROOT / "tools/helm_chart.py", "--check"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == ("0.2.0", __version__)
    kinds = [one["kind"] for one in yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])]
    printed = [*controller_objects(ControllerChoices()), *guard_objects(GuardChoices())]
    defined = [one for one in printed if one["kind"] == "CustomResourceDefinition"]
    assert kinds == [one["spec"]["names"]["kind"] for one in defined]


def test_sources_of_deadlines_reach_the_configuration():
    wanted = {"socket": {}, "ec2": {"rebalance": "Cordon"}, "nut": {"ups": "rack1@10.0.0.7"}, "leadSeconds": 60}
    rendered = helm.objects(helm.render({"agent": {"config": {"deadlines": wanted}}}))
    [found] = [one for one in rendered if one["kind"] == "ConfigMap" and "agent.yaml" in one["data"]]
    settings = config.parse_config(found["data"]["agent.yaml"].encode(), "agent.yaml").deadlines
    assert [source.value for source in settings.sources] == ["Socket", "EC2", "NUT"]
    assert settings.lead_seconds == 60


def test_the_configuration_of_day_one_observes(everything):
    [found] = [one for one in everything if key(one) == ("ConfigMap", helm.NAMESPACE, "lastcall-agent")]
    settings = config.parse_config(found["data"]["agent.yaml"].encode(), "agent.yaml")
    assert (settings.mode.value, settings.is_enabled, settings.warnings) == ("Observe", True, ())


def test_phases_by_priority_replace_the_two_periods_of_the_defaults():
    phases = {"shutdownGracePeriodByPodPriority": [{"priority": 0, "shutdownGracePeriodSeconds": 20}]}
    with pytest.raises(helm.HelmFailed, match="shutdownGracePeriod and shutdownGracePeriodCriticalPods, .* to null"):
        helm.render({"agent": {"config": phases}})
    without = {"shutdownGracePeriod": None, "shutdownGracePeriodCriticalPods": None}
    rendered = helm.objects(helm.render({"agent": {"config": phases | without}}))
    [found] = [one for one in rendered if key(one) == ("ConfigMap", helm.NAMESPACE, "lastcall-agent")]
    assert config.parse_config(found["data"]["agent.yaml"].encode(), "agent.yaml").requested_seconds == 20


@pytest.mark.parametrize("metrics", [{}, {"onNodeAddress": True}, {"onNodeAddress": True, "tlsSecretName": "own"}])
def test_the_agent_knows_what_it_is_started_with(metrics):
    rendered = helm.objects(helm.render({"agent": {"metrics": metrics}}))
    [workload] = [one for one in rendered if one["kind"] == "DaemonSet"]
    [container] = workload["spec"]["template"]["spec"]["containers"]
    verb, *arguments = (one.replace("$(NODE_NAME)", "n1").replace("$(HOST_IP)", "fd00::7") for one in container["args"])
    told = cli.get_command(None, verb).make_context(verb, arguments).params
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert (told["node_name"], told["in_cluster"]) == ("n1", True)
    assert told["metrics_bind_address"] == ("127.0.0.1", ports["status"])
    assert told["secure_metrics_bind_address"] == (("fd00::7", ports["metrics"]) if metrics else None)
    assert {container[probe]["httpGet"]["host"] for probe in ("livenessProbe", "readinessProbe")} == {"127.0.0.1"}
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    files = {told["tls_cert_file"] or "", told["tls_private_key_file"] or ""}
    own = {f"{mounts.get('tls')}/{name}" for name in ("tls.crt", "tls.key")}
    assert files == (own if "tlsSecretName" in metrics else {""})


def test_the_agent_has_the_nodes_directories_and_little_else():
    [workload] = [one for one in helm.objects(helm.render()) if one["kind"] == "DaemonSet"]
    pod = workload["spec"]["template"]["spec"]
    assert (pod["hostNetwork"], pod["dnsPolicy"], pod["priorityClassName"]) == (True, "Default", "system-node-critical")
    assert "hostPID" not in pod
    assert pod["tolerations"] == [{"operator": "Exists"}]
    paths = {one["name"]: one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one}
    [container] = pod["containers"]
    mounts = {one["name"]: one for one in container["volumeMounts"]}
    assert {name for name in paths if not mounts[name].get("readOnly")} == {"state", "delay-limit", "kubelet"}
    assert mounts["kubelet"]["mountPropagation"] == "HostToContainer", (
        "volumes must not stay mounted in the agent's pod"
    )
    assert {mounts[name]["mountPath"] for name in paths} == set(paths.values()), (
        "the paths of the host, for all programs"
    )
    assert not [path for path in paths.values() if path.endswith((".sock", "_socket"))]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def alerts():
    groups = yaml.safe_load((helm.CHART / "files/alerts.yaml").read_text())
    return [rule for group in groups for rule in group["rules"]]


def unknown_metrics(expression):
    """Names in an expression that look like metrics and are none of ours."""
    metrics = {one.text for one in ALL if one.kind == "metric"}
    found = re.findall(r"\b(?:lastcall|pod_gc|attach_detach|kubelet)_\w+", expression)
    return [name for name in found if re.sub("_(bucket|sum|count)$", "", name) not in metrics]


def test_alerts_and_panels_use_metrics_that_exist():
    board = json.loads((helm.CHART / "files/dashboard.json").read_text())
    expressions = [one["expr"] for panel in board["panels"] for one in panel.get("targets", [])]
    assert len(expressions) > 15
    assert {text: unknown_metrics(text) for text in (*expressions, *(one["expr"] for one in alerts()))} == {
        text: [] for text in (*expressions, *(one["expr"] for one in alerts()))
    }
    assert unknown_metrics("rate(lastcall_agent_armd[5m])") == ["lastcall_agent_armd"]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    sections = re.findall(r"^## (Lastcall\w+)$", (ROOT / "docs/runbooks.md").read_text(), re.MULTILINE)
    assert sections == [one["alert"] for one in alerts()]


def test_every_alert_is_rendered_with_its_runbook(everything):
    [rules] = [one for one in everything if one["kind"] == "PrometheusRule"]
    found = [rule for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert [one["alert"] for one in found] == [one["alert"] for one in alerts()]
    for rendered, source in zip(found, alerts(), strict=True):
        assert rendered["expr"] == source["expr"]
        assert rendered["annotations"]["runbook"] == f"docs/runbooks.md#{source['alert'].lower()}"
    address = {
        "monitoring": {"rules": {**ON, "runbooks": "https://example.com/runbooks"}},
        "controller": {"enabled": False},
    }
    [rules] = [one for one in helm.objects(helm.render(address)) if one["kind"] == "PrometheusRule"]
    [group] = rules["spec"]["groups"]
    assert group["rules"][0]["annotations"]["runbook_url"] == "https://example.com/runbooks#lastcallnotarmed"


def test_pod_monitors_are_made_for_what_can_be_scraped(everything):
    assert [name for kind, _, name in map(key, everything) if kind == "PodMonitor"] == [
        "lastcall-agent",
        "lastcall-controller",
        "lastcall-guard",
    ]
    [monitor] = [one for one in everything if key(one)[::2] == ("PodMonitor", "lastcall-agent")]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    credentials = endpoint["authorization"]["credentials"]
    [secret] = [one for one in everything if key(one)[::2] == ("Secret", credentials["name"])]
    assert secret["type"] == "kubernetes.io/service-account-token"
    files = helm.render({"monitoring": {"podMonitor": ON}})
    assert [name for kind, _, name in map(key, helm.objects(files)) if kind == "PodMonitor"] == ["lastcall-controller"]
    assert "set\nagent.metrics.onNodeAddress=true" in files["lastcall/templates/NOTES.txt"]
