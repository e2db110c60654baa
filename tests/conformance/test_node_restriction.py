"""What a kubelet may write: NodeRestriction, which sees what the Node authorizer lets through."""

import pytest
import pytest_asyncio
from support.conformance.api_client import APPLY, MERGE, unique
from support.conformance.objects import meta, pod

from lastcall.adapters.kube.resources import CLAIMS, CONFIG_MAPS, CSI_NODES, LEASES, NODES, PODS, dict_resource

source = pytest.mark.source
RESTRICTION = "plugin/pkg/admission/noderestriction/admission.go"
REFERENCES = "pkg/api/pod/util.go"
GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = dict_resource(GROUP, "v1", "roles"), dict_resource(GROUP, "v1", "rolebindings")
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MIRROR = {"kubernetes.io/config.mirror": "x"}


class Kubelet:
    """Of a Node that nobody runs."""

    def __init__(self, api, node):
        self.api, self.node = api, node["metadata"]
        self.name = self.node["name"]
        self.headers = {"impersonate-user": f"system:node:{self.name}", "impersonate-group": "system:nodes"}

    def ask(self, method, path, body=None, kind=MERGE):
        kind = kind if method == "PATCH" else "application/json"
        return self.api.ask(method, path, body, kind=kind, headers=self.headers)

    async def why(self, method, path, body=None, kind=MERGE):
        """Why it may not, behind the words that name the object."""
        said = await self.ask(method, path, body, kind).refused(403, "Forbidden")
        return said["message"].partition(" is forbidden: ")[2]

    def mirror(self, *, owner=(), annotations=MIRROR, owners=None, **spec):
        """A mirror pod, as kubelets make them."""
        said = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self.node["uid"], "controller": True}
        references = [{**said, **dict(owner)}] if owners is None else owners
        metadata = {"annotations": annotations, "ownerReferences": references}
        return pod("mirror", metadata=metadata, **{"node": self.name, **spec})


@pytest_asyncio.fixture(loop_scope="session")
async def kubelet(api):
    return Kubelet(api, await api.create(NODES, meta(unique("node"))))


@source(RESTRICTION)
async def test_a_node_makes_mirror_pods(api, kubelet):
    """Bound to itself, and owned by its Node."""
    downward = {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "e", "emptyDir": {}},
        {"name": "d", "projected": {"sources": [{"downwardAPI": {"items": [downward]}}]}},
    ]
    assert (await kubelet.ask("POST", api.at(PODS), kubelet.mirror(volumes=volumes)))["spec"][
        "nodeName"
    ] == kubelet.name


OTHER = {"apiVersion": "v1", "kind": "Node", "name": "other", "uid": "u"}
NO_MIRROR = {
    "no mirror": (
        {"annotations": {}},
        'pod does not have "kubernetes.io/config.mirror" annotation, node "{0}" can only create mirror pods',
    ),
    "of another node": ({"node": "other"}, 'node "{0}" can only create pods with spec.nodeName set to itself'),
    "two owners": (
        {"owners": [OTHER, {**OTHER, "uid": "v"}]},
        'node "{0}" can only create pods with a single owner reference set to itself',
    ),
    "no owner": ({"owners": []}, 'node "{0}" can only create pods with an owner reference set to itself'),
    "another owner": (
        {"owner": {"name": "other"}},
        'node "{0}" can only create pods with an owner reference set to itself',
    ),
    "an owner of another kind": (
        {"owner": {"kind": "Pod"}},
        'node "{0}" can only create pods with an owner reference set to itself',
    ),
    "not its controller": (
        {"owner": {"controller": False}},
        'node "{0}" can only create pods with a controller owner reference set to itself',
    ),
    "what keeps the Node": (
        {"owner": {"blockOwnerDeletion": True}},
        'node "{0}" must not set blockOwnerDeletion on an owner reference',
    ),
    "an earlier Node": ({"owner": {"uid": "u"}}, "node {0} UID mismatch: expected u got {1}"),
}


@source(RESTRICTION)
@pytest.mark.parametrize(("changes", "why"), NO_MIRROR.values(), ids=NO_MIRROR)
async def test_a_node_makes_no_other_pods(api, kubelet, changes, why):
    """Each with its reason."""
    said = await kubelet.why("POST", api.at(PODS), kubelet.mirror(**changes))
    assert said == why.format(kubelet.name, kubelet.node["uid"])


def in_volume(**source):
    return {"volumes": [{"name": "v", **source}]}


def projected(**source):
    return in_volume(projected={"sources": [source]})


def in_container(**fields):
    return {"containers": [{"name": "c", "image": "i:1", **fields}]}


def in_variable(**source):
    return in_container(env=[{"name": "A", "valueFrom": source}])


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RIGHTS = {
    "a service account": ({"serviceAccountName": "default"}, "reference service accounts"),
    "a secret of a volume": (in_volume(secret={"secretName": "s"}), "reference secrets"),
    "a secret of the registry": ({"imagePullSecrets": [{"name": "s"}]}, "reference secrets"),
    "a projected secret": (projected(secret={"name": "s"}), "reference secrets"),
    "a secret of a share": (in_volume(azureFile={"secretName": "s", "shareName": "s"}), "reference secrets"),
    "a secret in a variable": (in_variable(secretKeyRef={"name": "s", "key": "k"}), "reference secrets"),
    "a secret as variables": (in_container(envFrom=[{"secretRef": {"name": "s"}}]), "reference secrets"),
    "a secret of an init container": (
        {"initContainers": [{"name": "i", "image": "i:1", "envFrom": [{"secretRef": {"name": "s"}}]}]},
        "reference secrets",
    ),
    "a token": (
        projected(serviceAccountToken={"path": "t"}),
        "use ServiceAccountToken volume projections",
    ),
}
REFERS = {
    "a config map of a volume": (in_volume(configMap={"name": "m"}), "configmaps"),
    "a projected config map": (projected(configMap={"name": "m"}), "configmaps"),
    "a config map in a variable": (in_variable(configMapKeyRef={"name": "m", "key": "k"}), "configmaps"),
    "a config map as variables": (in_container(envFrom=[{"configMapRef": {"name": "m"}}]), "configmaps"),
    "a claim": (in_volume(persistentVolumeClaim={"claimName": "c"}), "persistentvolumeclaims"),
    "a claim of its own": (
        in_volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}),
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    "a driver": (in_volume(csi={"driver": "d.example"}), "csidrivers (via CSI volumes)"),
    "certificates": (projected(clusterTrustBundle={"name": "b", "path": "p"}), "clustertrustbundles"),
    "a claim of a device": (
        {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
        "resourceclaims",
    ),
}


@source(REFERENCES)
@pytest.mark.parametrize(("spec", "what"), REFERS.values(), ids=REFERS)
async def test_mirror_pods_refer_to_nothing_of_the_api(api, kubelet, spec, what):
    """A node that could make such pods would give itself rights."""
    said = await kubelet.why("POST", api.at(PODS), kubelet.mirror(**spec))
    assert said == f'node "{kubelet.name}" can not create pods that reference {what}'


@source("plugin/pkg/admission/serviceaccount/admission.go")
@pytest.mark.parametrize(("spec", "what"), RIGHTS.values(), ids=RIGHTS)
async def test_nobody_makes_a_mirror_pod_with_rights(api, kubelet, spec, what):
    """Not even an administrator."""
    said = await api.create(PODS, kubelet.mirror(**spec)).refused(403, "Forbidden")
    assert said["message"] == f'pods "mirror" is forbidden: a mirror pod may not {what}'
    assert await kubelet.why("POST", api.at(PODS), kubelet.mirror(**spec)) == f"a mirror pod may not {what}"


@source(RESTRICTION)
async def test_a_node_changes_no_pod(api, kubelet):
    """Its status alone, and of that neither labels nor claims; it evicts and deletes its own."""
    await api.create(PODS, pod("own", node=kubelet.name))
    await api.create(PODS, pod("other", node="other"))
    status = {"status": {"message": "m"}}
    assert (await kubelet.ask("PATCH", api.at(PODS, "own", "status"), status))["status"]["message"] == "m"
    only = f'node "{kubelet.name}" can only'
    assert await kubelet.why("PATCH", api.at(PODS, "other", "status"), status) == (
        f"{only} update pod status for pods with spec.nodeName set to itself"
    )
    body = {"apiVersion": "policy/v1", "kind": "Eviction", **meta("other")}
    assert await kubelet.why("POST", api.at(PODS, "other", "eviction"), body) == (
        f"node {kubelet.name} can only evict pods with spec.nodeName set to itself"
    )
    assert await kubelet.why("DELETE", api.at(PODS, "other")) == (
        f"{only} delete pods with spec.nodeName set to itself"
    )
    assert (await kubelet.ask("DELETE", api.at(PODS, "own")).reply()).status == 200


IN_STATUS = {
    "labels": ({"metadata": {"labels": {"a": "b"}}}, "labels through pod status"),
    "claims": (
        {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "stolen"}]}},
        "resource claim statues",
    ),
    "extended": (
        {
            "status": {
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "stolen",
                    "requestMappings": [{"containerName": "c", "resourceName": "example.com/r", "requestName": "r"}],
                }
            }
        },
        "extended resource claim status",
    ),
}


@source(RESTRICTION)
@pytest.mark.parametrize(("patch", "what"), IN_STATUS.values(), ids=IN_STATUS)
async def test_what_a_node_leaves_of_a_status(api, kubelet, patch, what):
    """It would choose what others send to the pod, or which devices it may read."""
    claims = [{"name": "c", "resourceClaimName": "c"}]
    await api.create(PODS, pod("own", node=kubelet.name, resourceClaims=claims))
    said = await kubelet.why("PATCH", api.at(PODS, "own", "status"), patch)
    assert said == f'node "{kubelet.name}" cannot update {what}'


CONFIG = {"configMap": {"namespace": "n", "name": "m", "kubeletConfigKey": "k"}}
REGISTERS = {
    "a label of an administrator": "node-restriction.kubernetes.io/a",
    "a label below it": "x.node-restriction.kubernetes.io/a",
    "a label of Kubernetes": "x.kubernetes.io/a",
    "a label of k8s.io": "x.k8s.io/a",
}


@source(RESTRICTION)
@pytest.mark.parametrize("label", REGISTERS.values(), ids=REGISTERS)
async def test_a_node_has_no_label_of_an_administrator(api, kubelet, label):
    """Neither when it registers nor later; nor does it take one away."""
    new = Kubelet(api, meta(unique("node")))
    said = await new.why("POST", api.at(NODES), meta(new.name, labels={label: "x", "example.com/a": "b"}))
    assert said == f'node "{new.name}" is not allowed to set the following labels: {label}'
    path, why = api.at(NODES, kubelet.name), f"is not allowed to modify labels: {label}"
    assert await kubelet.why("PATCH", path, {"metadata": {"labels": {label: "x"}}}) == why
    assert await kubelet.why("PATCH", f"{path}/status", {"metadata": {"labels": {label: "x"}}}) == why
    await api.patch(NODES, kubelet.name, {"metadata": {"labels": {label: "x"}}})
    assert await kubelet.why("PATCH", path, {"metadata": {"labels": {label: "y"}}}) == why
    assert await kubelet.why("PATCH", path, {"metadata": {"labels": {label: None}}}) == why


OWN = {"kubernetes.io/hostname": "a", "topology.kubernetes.io/zone": "b", "kubelet.kubernetes.io/c": "d", "e": "f"}


@source(RESTRICTION)
async def test_a_node_registers_and_labels_itself(api):
    """With what kubelets know, and what is not of Kubernetes."""
    new = Kubelet(api, meta(unique("node")) | {"uid": ""})
    api.doomed.append(api.at(NODES, new.name))
    made = await new.ask("POST", api.at(NODES), meta(new.name, labels=OWN))
    assert OWN.items() <= made["metadata"]["labels"].items()
    changed = {"topology.kubernetes.io/zone": "c", "e": None, "x.node.kubernetes.io/g": "h"}
    made = await new.ask("PATCH", api.at(NODES, new.name), {"metadata": {"labels": changed}})
    assert made["metadata"]["labels"]["topology.kubernetes.io/zone"] == "c"


OF_NODE = {
    "taints": ({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, "modify taints"),
    "owners": ({"metadata": {"ownerReferences": [OTHER]}}, "modify ownerReferences"),
}


@source(RESTRICTION)
@pytest.mark.parametrize("kind", [MERGE, APPLY], ids=["a patch", "an apply"])
@pytest.mark.parametrize(("patch", "what"), OF_NODE.values(), ids=OF_NODE)
async def test_what_a_node_leaves_of_its_node(api, kubelet, patch, what, kind):
    """Taints keep pods away from it, owners would have it deleted."""
    path = api.at(NODES, kubelet.name)
    if kind == APPLY:
        path += "?fieldManager=m&force=true"
        patch = {"apiVersion": "v1", "kind": "Node", **patch}
    said = await kubelet.why("PATCH", path, patch, kind)
    assert said == f'node "{kubelet.name}" is not allowed to {what}'


@source(RESTRICTION)
async def test_a_node_writes_no_other_node(api, kubelet):
    """Nor makes one, nor one with a source of its configuration."""
    other = (await api.create(NODES, meta(unique("node"))))["metadata"]["name"]
    for path in (api.at(NODES, other), api.at(NODES, other, "status")):
        said = await kubelet.why("PATCH", path, {"metadata": {"annotations": {"a": "b"}}})
        assert said == f'node "{kubelet.name}" is not allowed to modify node "{other}"'
    said = await kubelet.why("POST", api.at(NODES), meta("third"))
    assert said == f'node "{kubelet.name}" is not allowed to modify node "third"'
    new = Kubelet(api, meta(unique("node")))
    said = await new.why("POST", api.at(NODES), {**meta(new.name), "spec": {"configSource": CONFIG}})
    assert said == f'node "{new.name}" is not allowed to create pods with a non-nil configSource'


@source(RESTRICTION)
async def test_a_node_has_the_lease_of_its_name(api, kubelet):
    """In kube-node-lease; what the Node authorizer cannot know of a POST, NodeRestriction does."""
    made = f"{NODE_LEASES}/{kubelet.name}"
    api.doomed.append(made)
    assert (await kubelet.ask("POST", NODE_LEASES, meta(kubelet.name)).reply()).status == 201
    assert await kubelet.why("POST", NODE_LEASES, meta("other")) == (
        "can only access node lease with the same name as the requesting node"
    )
    assert (await kubelet.why("POST", api.at(LEASES), meta(kubelet.name))).endswith(
        ': can only access leases in the "kube-node-lease" system namespace'
    )
    for method, body in (("PATCH", {"spec": {}}), ("DELETE", None)):
        said = await kubelet.why(method, f"{NODE_LEASES}/other", body)
        assert said.endswith(": can only access node lease with the same name as the requesting node")


@source(RESTRICTION)
async def test_a_node_has_the_csi_node_of_its_name(api, kubelet):
    """As with its Lease."""
    spec = {"spec": {"drivers": []}}
    assert await kubelet.why("POST", api.at(CSI_NODES), {**meta("other"), **spec}) == (
        "can only access CSINode with the same name as the requesting node"
    )
    api.doomed.append(api.at(CSI_NODES, kubelet.name))
    assert (await kubelet.ask("POST", api.at(CSI_NODES), {**meta(kubelet.name), **spec}).reply()).status == 201


GIVEN = {
    "apiGroups": ["", "coordination.k8s.io"],
    "resources": ["*"],
    "verbs": ["create", "update", "patch", "delete"],
}


@source(RESTRICTION)
async def test_a_role_gives_a_node_no_more(api, kubelet):
    """RBAC may allow what the Node authorizer does not; NodeRestriction refuses it all the same."""
    await api.create(PODS, pod("own", node=kubelet.name))
    await api.create(CLAIMS, {**meta("c"), "spec": CLAIM})
    await api.create(ROLES, {**meta("given"), "rules": [GIVEN]})
    subject = {"kind": "User", "apiGroup": GROUP, "name": f"system:node:{kubelet.name}"}
    reference = {"apiGroup": GROUP, "kind": "Role", "name": "given"}
    await api.create(BINDINGS, {**meta("given"), "roleRef": reference, "subjects": [subject]})
    change = {"metadata": {"annotations": {"a": "b"}}}

    async def given():
        return (await kubelet.ask("PATCH", api.at(CONFIG_MAPS, "none"), change).reply()).status == 404

    await api.until(given)
    said = await kubelet.why("PATCH", api.at(PODS, "own"), change)
    assert said == f'unexpected operation "UPDATE", node "{kubelet.name}" can only create and delete mirror pods'
    said = await kubelet.why("PATCH", api.at(PODS, "own", "ephemeralcontainers"), change)
    assert said == "unexpected pod subresource \"ephemeralcontainers\", only 'status' and 'eviction' are allowed"
    said = await kubelet.why("POST", api.at(LEASES), meta(kubelet.name))
    assert said == 'can only access leases in the "kube-node-lease" system namespace'
    assert await kubelet.why("PATCH", api.at(CLAIMS, "c"), change) == "may only update PVC status"


@source("pkg/auth/nodeidentifier/default.go")
async def test_a_node_is_of_the_group_of_nodes(api, kubelet):
    """Its name alone neither gives it the rights of nodes nor restricts it."""
    alone = {"impersonate-user": f"system:node:{kubelet.name}", "impersonate-group": "other"}
    await api.ask("GET", api.at(NODES, kubelet.name), headers=alone).refused(403, "Forbidden")
    master = alone | {"impersonate-group": "system:masters"}
    taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    reply = await api.ask("PATCH", api.at(NODES, kubelet.name), taints, kind=MERGE, headers=master).reply()
    assert reply.status == 200
