"""Objects of the built-in kinds, in a lab of one's own and in virtual time."""

import json

from support.lab.replayed_server import LabApi

from lastcall_lab import virtual

NAMESPACE = "kinds"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}
TO_END = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

WORKLOAD = {"spec": {"selector": SELECTOR, "template": TEMPLATE}}

PATHS = {
    "deployments": "/apis/apps/v1/namespaces/kinds/deployments",
    "replicasets": "/apis/apps/v1/namespaces/kinds/replicasets",
    "statefulsets": "/apis/apps/v1/namespaces/kinds/statefulsets",
    "daemonsets": "/apis/apps/v1/namespaces/kinds/daemonsets",
    "controllerrevisions": "/apis/apps/v1/namespaces/kinds/controllerrevisions",
    "jobs": "/apis/batch/v1/namespaces/kinds/jobs",
    "cronjobs": "/apis/batch/v1/namespaces/kinds/cronjobs",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/kinds/poddisruptionbudgets",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "nodes": "/api/v1/nodes",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/kinds/leases",
    "services": "/api/v1/namespaces/kinds/services",
    "endpoints": "/api/v1/namespaces/kinds/endpoints",
    "endpointslices": "/apis/discovery.k8s.io/v1/namespaces/kinds/endpointslices",
    "events": "/api/v1/namespaces/kinds/events",
    "newevents": "/apis/events.k8s.io/v1/namespaces/kinds/events",
    "persistentvolumes": "/api/v1/persistentvolumes",
    "persistentvolumeclaims": "/api/v1/namespaces/kinds/persistentvolumeclaims",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
    "csinodes": "/apis/storage.k8s.io/v1/csinodes",
    "csidrivers": "/apis/storage.k8s.io/v1/csidrivers",
    "volumeattachments": "/apis/storage.k8s.io/v1/volumeattachments",
    "configmaps": "/api/v1/namespaces/kinds/configmaps",
    "secrets": "/api/v1/namespaces/kinds/secrets",
    "serviceaccounts": "/api/v1/namespaces/kinds/serviceaccounts",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1/namespaces/kinds/rolebindings",
    "networkpolicies": "/apis/networking.k8s.io/v1/namespaces/kinds/networkpolicies",
    "horizontalpodautoscalers": "/apis/autoscaling/v2/namespaces/kinds/horizontalpodautoscalers",
    "mutatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}


class Api(LabApi):
    """Asks with JSON, and raises what is no success."""

    async def call(self, method, path, body=None, *, patch=False, user=None):
        kind = "application/merge-patch+json" if patch else "application/json"
        data = b"" if body is None else json.dumps(body).encode()
        return await self.ask(method, path, {"content-type": kind}, data, user)

    async def make(self, resource, name, **more):
        """The created object."""
        status, _, obj = await self.call("POST", PATHS[resource], {"metadata": {"name": name}, **more})
        assert status == 201, obj
        return obj

    async def change(self, resource, name, body, part=""):
        """Status, headers and object of a merge patch."""
        return await self.call("PATCH", f"{PATHS[resource]}/{name}{part}", body, patch=True)


def with_api(test):
    """Runs in virtual time, with a server that has the namespace."""

    async def run():
        api = Api(virtual.VirtualClock())
        await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await test(api)

    virtual.run(run())


def fields(obj):
    return [cause["field"] for cause in obj["details"]["causes"]]
