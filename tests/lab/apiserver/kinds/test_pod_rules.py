"""Which rules a pod keeps on the lab's API server, and what may change of it."""

import pytest
from support.lab.pod_requests import changed, container, made, pod, said

from lastcall_lab.apiserver.kinds.pod_defaults import set_pod_defaults
from lastcall_lab.apiserver.kinds.pod_spec_rules import validate_pod_spec
from lastcall_lab.apiserver.kinds.pod_update_rules import MIRROR
from lastcall_lab.apiserver.kinds.pod_warnings import pod_warnings
from lastcall_lab.apiserver.kinds.pods import PodKind
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions

NO_HANDLER = "may not specify more than 1 handler type"
SIDECARS = "may not be set for init containers without restartPolicy=Always"
FULL = {"containers": [container()]}
RULES = {
    "good": (FULL, []),
    "no name": ({"containers": [{"image": "i"}]}, ["spec.containers[0].name: Required value"]),
    "twice": (
        {"containers": [container()], "initContainers": [container()]},
        ['spec.initContainers[0].name: Duplicate value: "c"'],
    ),
    "port": (
        {"containers": [container(ports=[{"containerPort": 0, "name": "a--b"}])]},
        [
            'spec.containers[0].ports[0].name: Invalid value: "a--b": must not contain consecutive hyphens',
            "spec.containers[0].ports[0].containerPort: Required value",
        ],
    ),
    "host port": (
        {"containers": [container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}])]},
        ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//9"'],
    ),
    "host network": (
        {**FULL, "hostNetwork": True, "containers": [container(ports=[{"containerPort": 80, "hostPort": 81}])]},
        [
            (
                "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is"
                " true"
            )
        ],
    ),
    "variable": (
        {
            "containers": [
                container(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}])
            ]
        },
        ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ),
    "resource": (
        {"containers": [container(resources={"requests": {"gpus": "1"}})]},
        [
            (
                'spec.containers[0].resources.requests[gpus]: Invalid value: "gpus": must be a standard resource type or'
                " fully qualified"
            ),
            (
                'spec.containers[0].resources.requests[gpus]: Invalid value: "gpus": must be a standard resource for'
                " containers"
            ),
        ],
    ),
    "extended resource": (
        {"containers": [container(resources={"requests": {"x.example/gpu": "1"}})]},
        ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    "negative": (
        {"containers": [container(resources={"requests": {"cpu": "-1"}})]},
        ['spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "probe": (
        {"containers": [container(livenessProbe={"successThreshold": 2, "exec": {}, "grpc": {"port": 1}})]},
        [
            "spec.containers[0].livenessProbe.exec.command: Required value",
            f"spec.containers[0].livenessProbe.grpc: Forbidden: {NO_HANDLER}",
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ],
    ),
    "empty probe": (
        {"containers": [container(startupProbe={})]},
        ["spec.containers[0].startupProbe: Required value: must specify a handler type"],
    ),
    "sleep": (
        {
            "terminationGracePeriodSeconds": 5,
            "containers": [container(lifecycle={"preStop": {"sleep": {"seconds": 6}}})],
        },
        [
            (
                "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 6: must be non-negative and less than"
                " terminationGracePeriodSeconds (5)"
            )
        ],
    ),
    "init hooks": (
        {
            **FULL,
            "initContainers": [{"name": "i", "image": "i", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}],
        },
        [f"spec.initContainers[0].lifecycle: Forbidden: {SIDECARS}"],
    ),
    "sidecar": (
        {
            **FULL,
            "initContainers": [
                {
                    "name": "i",
                    "image": "i",
                    "restartPolicy": "Always",
                    "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
                }
            ],
        },
        [],
    ),
    "volumes": (
        {
            "volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}, {"name": "w"}, {"name": "w"}],
            "containers": [
                container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}])
            ],
        },
        [
            "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
            'spec.volumes[2].name: Duplicate value: "w"',
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
            'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
        ],
    ),
    "volume paths": (
        {**FULL, "volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}, {"name": "w", "secret": {}}]},
        [
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            "spec.volumes[1].secret.secretName: Required value",
        ],
    ),
    "tolerations": (
        {
            **FULL,
            "tolerations": [{"key": "a", "operator": "Exists", "value": "b", "tolerationSeconds": 1}, {"key": ""}],
        },
        [
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
            (
                'spec.tolerations[1].operator: Invalid value: "": operator must be Exists when `key` is empty, which means'
                ' "match all values and all keys"'
            ),
        ],
    ),
    "affinity": (
        {
            **FULL,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0}]},
            },
        },
        [
            (
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required"
                " value: must have at least one node selector term"
            ),
            (
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0:"
                " must be in the range 1-100"
            ),
            (
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"
                ".topologyKey: Required value: can not be empty"
            ),
            (
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"
                '.topologyKey: Invalid value: "": name part must be non-empty'
            ),
        ],
    ),
    "spreading": (
        {**FULL, "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "Never"}]},
        [
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            (
                'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values:'
                ' "DoNotSchedule", "ScheduleAnyway"'
            ),
        ],
    ),
    "gates": (
        {**FULL, "schedulingGates": [{"name": "g"}, {"name": "g"}]},
        ['spec.schedulingGates[1]: Duplicate value: "g"'],
    ),
    "dns": (
        {**FULL, "dnsPolicy": "None"},
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    "deadline": (
        {**FULL, "activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    "users": (
        {**FULL, "securityContext": {"runAsUser": -1}},
        ["spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    spec, expected = RULES[name]
    obj = pod(**spec)
    set_pod_defaults(obj)
    assert said(validate_pod_spec(obj["spec"], "spec", is_pod=True)) == expected


def test_a_token_needs_an_account_and_a_mirror_a_node():
    token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    wrong = said(PodKind().validate(made(volumes=[token], metadata={"annotations": {MIRROR: "x"}})))
    assert wrong == [
        f'metadata.annotations[{MIRROR}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
        (
            "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when"
            " serviceAccountName is not set"
        ),
    ]


def test_nothing_that_only_comes_later_may_be_there_at_first():
    obj = made(ephemeralContainers=[container(name="e")], nodeName="n", schedulingGates=[{"name": "g"}])
    assert said(PodKind().validate(obj)) == [
        "spec.ephemeralContainers: Forbidden: cannot be set on create",
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ]


# -- changes -----------------------------------------------------------------------------------------------------------

FIXED = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
CHANGES = {
    "image": ({}, {"containers": [container(image="j", imagePullPolicy="Always")]}, ""),
    "no image": ({}, {"containers": [container(image="")]}, "spec.containers[0].image: Required value"),
    "command": ({}, {"containers": [container(command=["x"])]}, FIXED),
    "containers": ({}, {"containers": [container(), container(name="d")]}, "may not add or remove containers"),
    "node": ({}, {"nodeName": "n"}, FIXED),
    "deadline": ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 5}, ""),
    "longer deadline": ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 10}, "must be less than or equal to"),
    "no deadline": ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": None}, "must not update from a positive"),
    "toleration": ({"tolerations": [TOLERATION]}, {"tolerations": [{**TOLERATION, "tolerationSeconds": 9}]}, ""),
    "other toleration": ({"tolerations": [TOLERATION]}, {"tolerations": []}, "existing toleration can not be modified"),
    "gate removed": ({"schedulingGates": [{"name": "g"}]}, {"schedulingGates": None}, ""),
    "gate added": ({"schedulingGates": [{"name": "g"}]}, {"schedulingGates": [{"name": "h"}]}, "only deletion is"),
    "gated selector": ({"schedulingGates": [{"name": "g"}]}, {"nodeSelector": {"a": "b"}}, ""),
    "selector": ({}, {"nodeSelector": {"a": "b"}}, FIXED),
    "grace": ({}, {"terminationGracePeriodSeconds": 5}, FIXED),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name):
    before, after, expected = CHANGES[name]
    old = made(**before)
    wrong = said(PodKind().validate_update(changed(old, **after), old))
    assert any(expected in text for text in wrong) if expected else not wrong, wrong


def test_a_change_that_is_refused_is_shown():
    old = made(tolerations=[TOLERATION])
    new = changed(old, hostNetwork=True, tolerations=[TOLERATION, {"key": "b", "operator": "Exists"}])
    _, _, diff = said(PodKind().validate_update(new, old))[-1].partition("\n")
    assert [line for line in diff.splitlines() if line[0] in "+-"] == [
        '-  "HostNetwork": false,',
        '+  "HostNetwork": true,',
    ]


def ended(code, **more):
    return {"name": "c", "state": {"terminated": {"exitCode": code}}, **more}


RUNNING = {"name": "c", "state": {"running": {}}}
STATUSES = {
    "restart": ("Always", ended(1), RUNNING, []),
    "failed once": ("OnFailure", ended(1), RUNNING, []),
    "done": ("OnFailure", ended(0), RUNNING, ["status.containerStatuses[0].state: Forbidden: may not be transitioned"]),
    "over": ("Never", ended(1), RUNNING, ["status.containerStatuses[0].state: Forbidden: may not be transitioned"]),
    "still over": ("Never", ended(1), ended(1), []),
}


@pytest.mark.parametrize("name", STATUSES)
def test_a_container_that_has_ended_stays_ended(name):
    policy, before, after, expected = STATUSES[name]
    old = made(restartPolicy=policy)
    new = changed(old)
    old["status"]["containerStatuses"], new["status"]["containerStatuses"] = [before], [after]
    wrong = said(PodKind().validate_status(new, old))
    assert [text[: len(start)] for text, start in zip(wrong, expected, strict=True)] == expected


def test_a_status_keeps_what_its_writer_leaves_out():
    old = made(nodeName="n")
    old["status"].update(
        observedGeneration=3, conditions=[{"type": "Ready", "status": "True", "observedGeneration": 2}]
    )
    new = changed(old)
    new["status"] = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "False"}]}
    new["metadata"] = {**new["metadata"], "labels": {"a": "b"}, "ownerReferences": [{"name": "x"}]}
    PodKind().prepare_status(new, old)
    assert new["status"] == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "observedGeneration": 3,
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 2}],
    }
    assert new["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in new["metadata"]


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "seconds"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Pending", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 7}, "Running", None, 7),
        ({"nodeName": "n"}, "Running", 3, 3),
        ({"nodeName": "n"}, "Running", -3, 1),
        ({"nodeName": "n"}, "Failed", 30, 0),
        ({"nodeName": "n"}, "Succeeded", None, 0),
    ],
)
def test_grace(spec, phase, asked, seconds):
    obj = made(**spec)
    obj["status"]["phase"] = phase
    assert PodKind().grace(obj, DeleteOptions(grace=asked)) == seconds


def test_warnings():
    obj = made(
        metadata={"annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
        name="a.b",
        nodeSelector={"beta.kubernetes.io/arch": "amd64"},
        volumes=[{"name": "v", "gitRepo": {"repository": "r"}}],
        containers=[
            container(
                env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}],
                ports=[{"containerPort": 80}, {"containerPort": 80}],
                resources={"requests": {"memory": "100m"}},
            )
        ],
    )
    starts = [text.partition(":")[0] for text in pod_warnings(obj)]
    assert starts == [
        "metadata.name",
        "spec.nodeSelector[beta.kubernetes.io/arch]",
        "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]",
        "spec.volumes[0].gitRepo",
        "spec.containers[0].resources.requests[memory]",
        "spec.containers[0].ports[1]",
    ]
