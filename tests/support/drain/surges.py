"""Workloads, budgets and autoscalers of the tests of surges."""

import msgspec

from lastcall.model.budgets import Budget
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload


def workload(kind="Deployment", replicas=1, deleted=None, annotations=None, status=None, generation=0, **spec):
    metadata = {
        "name": "web",
        "namespace": "shop",
        "resourceVersion": "7",
        "generation": generation,
        "deletionTimestamp": deleted,
        "annotations": annotations,
    }
    document = {"kind": kind, "metadata": metadata, "spec": {"replicas": replicas, **spec}, "status": status or {}}
    return msgspec.convert(document, SurgeableWorkload)


def rolling(surge, unavailable):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def budget(expected=0, **spec):
    document = {"metadata": {"name": "floor", "namespace": "shop"}, "spec": spec, "status": {"expectedPods": expected}}
    return msgspec.convert(document, Budget)


def autoscaler(most, kind="Deployment", name="web", namespace="shop", least=1, annotations=None):
    spec = {"scaleTargetRef": {"kind": kind, "name": name}, "minReplicas": least, "maxReplicas": most}
    metadata = {"name": "hpa", "namespace": namespace, "resourceVersion": "9", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Autoscaler)
