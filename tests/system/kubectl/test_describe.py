"""kubectl describe of every kind with behaviour, with what controllers have told; custom resources."""

import re

import pytest
from support.kube.kubectl import config_map, items, kubectl, lab, pod, rows, workload  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)

LEVELS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "levels.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"plural": "levels", "singular": "level", "kind": "Level", "shortNames": ["lv"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "Height", "type": "integer", "jsonPath": ".spec.height"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "How high it is.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["height"],
                                "properties": {
                                    "height": {"type": "integer", "maximum": 9, "description": "In metres."}
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def test_describe_a_pod_with_its_events(kubectl):  # noqa: F811
    web = pod("web", containers=["main", "beside"], priorityClassName="system-node-critical")
    kubectl("create -f -", given=web)
    kubectl.until("get pod web", lambda said: "Running" in said)
    uid = kubectl("get pod web -o jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": kubectl.namespace,
            "name": "web",
            "uid": uid,
            "apiVersion": "v1",
        },
        "reason": "Seen",
        "message": "somebody has looked",
        "type": "Warning",
        "source": {"component": "test"},
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:10Z",
    }
    kubectl("create -f -", given=event)
    said = kubectl("describe pod web")
    told = dict(line.split(":", 1) for line in said.splitlines() if ":" in line and not line.startswith(" "))
    assert told["Node"].strip() == "n1/127.0.0.9"
    assert told["Priority Class Name"].strip() == "system-node-critical"
    assert told["Priority"].strip() == "2000001000"
    assert told["Status"].strip() == "Running"
    assert told["QoS Class"].strip() == "BestEffort"
    assert "  main:" in said
    assert "  beside:" in said
    assert "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" in said
    assert re.search(r"Warning +Seen +\S+ \(x3 over \S+\) +test +somebody has looked", said)
    assert re.search(r"Warning +Seen +Pod/web +somebody has looked", kubectl("events"))
    assert re.search(r"Warning +Seen +Pod/web", kubectl("events --for pod/web --types=Warning"))
    assert "somebody" not in kubectl.run("events --types=Normal").out


def test_describe_says_what_a_controller_did(kubectl):  # noqa: F811
    kubectl("create -f -", given=workload("ReplicaSet", "web", replicas=2, pod_spec={"nodeName": "n1"}))
    kubectl.until("get rs web -o jsonpath={.status.readyReplicas}", lambda said: said == "2")
    said = kubectl("describe rs web")
    assert "Replicas:     2 current / 2 desired" in said
    assert "Pods Status:  2 Running / 0 Waiting / 0 Succeeded / 0 Failed" in said
    assert len(re.findall(r"Normal +SuccessfulCreate .* Created pod: web-\w{5}", said)) == 2
    assert "Controlled By:  ReplicaSet/web" in kubectl("describe pods -l app=web")


# Runs of blanks count as one.
DESCRIBED = {
    "namespace": ("describe namespace default", "Status: Active"),
    "node": ("describe node n1", "Capacity:\n cpu: 8\n"),
    "service": ("describe svc kubernetes -n default", "TargetPort: 6443/TCP"),
    "endpointslice": ("describe endpointslices -l kubernetes.io/service-name=web", "AddressType: IPv4"),
    "persistentvolume": ("describe pv vol", "Reclaim Policy: Retain"),
    "persistentvolumeclaim": ("describe pvc claim", "Access Modes: "),
    "storageclass": ("describe sc slow", "Provisioner: disks.example.org"),
    "csinode": ("describe csinode n1", "disks.example.org:"),
    "volumeattachment": ("describe volumeattachment att", "Attacher: disks.example.org"),
    "deployment": ("describe deploy d", "StrategyType: RollingUpdate"),
    "statefulset": ("describe sts s", "Update Strategy: RollingUpdate"),
    "daemonset": ("describe ds e", "Pods Status: "),
    "job": ("describe job j", "Parallelism: 1"),
    "cronjob": ("describe cronjob cj", "Schedule: @daily"),
    "poddisruptionbudget": ("describe pdb b", "Min available: 1"),
    "priorityclass": ("describe pc system-node-critical", "Value: 2000001000"),
    "lease": ("describe lease n1 -n kube-node-lease", "Holder Identity:"),
    "validatingwebhook": ("describe validatingwebhookconfiguration hook", "Failure Policy: Ignore"),
    "definition": ("describe crd levels.example.org", "Kind: Level"),
    "custom": ("describe level low", "Height: 1"),
    "configmap": ("describe cm c", "color:\n----\nred\n"),
    "secret": ("describe secret k", "password: 3 bytes"),
    "serviceaccount": ("describe sa default", "Image pull secrets: <none>"),
    "role": ("describe clusterrole reader", "pods [] [] [get list]"),
    "horizontalpodautoscaler": ("describe hpa d", "Max replicas: 3"),
    "networkpolicy": ("describe netpol np", "PodSelector: app=d"),
}


@pytest.fixture(scope="module")
def described(lab):  # noqa: F811
    kubectl = lab.kubectl("described")  # noqa: F811
    kubectl("create -f -", given=LEVELS)
    kubectl("wait --for=condition=Established crd/levels.example.org --timeout=60s")
    disks = "disks.example.org"
    kubectl(
        "create -f -",
        given=items(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "vol"},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "csi": {"driver": disks, "volumeHandle": "h"},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "claim"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "slow",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            },
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "slow"},
                "provisioner": disks,
            },
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": "n1"},
                "spec": {"drivers": [{"name": disks, "nodeID": "n1"}]},
            },
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": "att"},
                "spec": {"attacher": disks, "nodeName": "n1", "source": {"persistentVolumeName": "vol"}},
            },
            workload("Deployment", "d", replicas=0),
            workload("StatefulSet", "s", replicas=0, serviceName="s"),
            workload("DaemonSet", "e", pod_spec={"nodeSelector": {"no": "such"}}),
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "hook"},
                "webhooks": [
                    {
                        "name": "a.example.org",
                        "clientConfig": {"url": "https://127.0.0.1:1/"},
                        "failurePolicy": "Ignore",
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "rules": [
                            {
                                "operations": ["CREATE"],
                                "apiGroups": ["no.such"],
                                "apiVersions": ["v1"],
                                "resources": ["x"],
                            }
                        ],
                    }
                ],
            },
            {"apiVersion": "example.org/v1", "kind": "Level", "metadata": {"name": "low"}, "spec": {"height": 1}},
            config_map("c", color="red"),
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "np"},
                "spec": {"podSelector": {"matchLabels": {"app": "d"}}, "policyTypes": ["Ingress"]},
            },
        ),
    )
    kubectl("create service clusterip web --tcp=80")
    kubectl("create job j --image=web:1")
    kubectl("create cronjob cj --image=web:1 --schedule=@daily")
    kubectl("create pdb b --selector=app=d --min-available=1")
    kubectl("create secret generic k --from-literal=password=abc")
    kubectl("create clusterrole reader --verb=get,list --resource=pods")
    kubectl("autoscale deploy d --max=3 --cpu=80%")
    return kubectl


@pytest.mark.parametrize("kind", DESCRIBED)
def test_describe(described, kind):
    line, words = DESCRIBED[kind]
    said = described.run(line)
    assert (said.code, said.err) == (0, "")
    assert words in re.sub(r" +", " ", said.out)


def test_custom_resources_have_their_own_columns_and_explanation(described):
    assert rows(described("get lv")) == [["NAME", "HEIGHT"], ["low", "1"]]
    assert "In metres." in described("explain level.spec.height")
    assert "levels" in described("api-resources --api-group=example.org")
    high = {"apiVersion": "example.org/v1", "kind": "Level", "metadata": {"name": "high"}, "spec": {"height": 10}}
    assert described.fails("create -f -", given=high) == (
        'The Level "high" is invalid: spec.height: Invalid value: 10: spec.height in body should be less than or equal '
        "to 9\n"
    )
