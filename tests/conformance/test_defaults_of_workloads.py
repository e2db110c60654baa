"""What the server fills into new workloads, their autoscalers and their budgets."""

import pytest
from support.conformance.objects import CONTAINER, job, meta, workload

from lastcall.adapters.kube.resources import BUDGETS, DAEMON_SETS, DEPLOYMENTS, JOBS, STATEFUL_SETS, dict_resource

source = pytest.mark.source
APPS = "pkg/apis/apps/v1/defaults.go"
CRON_JOBS = dict_resource("batch", "v1", "cronjobs")
SCALERS = dict_resource("autoscaling", "v2", "horizontalpodautoscalers")


@source(APPS)
async def test_defaults_of_deployments(api):
    """Rolling updates by quarters, ten old revisions, ten minutes to make progress."""
    spec = (await api.create(DEPLOYMENTS, workload("d", paused=True, replicas=None)))["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)


@source(APPS)
async def test_a_recreating_deployment_has_no_rolling_update(api):
    """Its strategy has only a type."""
    made = await api.create(DEPLOYMENTS, workload("d", strategy={"type": "Recreate"}))
    assert made["spec"]["strategy"] == {"type": "Recreate"}


@source(APPS)
async def test_defaults_of_stateful_sets(api):
    """One after the other, from the last to the first; claims are kept."""
    spec = (await api.create(STATEFUL_SETS, workload("s")))["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


@source(APPS)
async def test_defaults_of_daemon_sets(api):
    """One node at a time, without surge."""
    made = await api.create(DAEMON_SETS, workload("d", replicas=None, template=_nowhere("d")))
    assert made["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }


def _nowhere(app):
    spec = {"containers": [dict(CONTAINER)], "nodeSelector": {"conformance": "nowhere"}}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


@source("pkg/apis/batch/v1/defaults.go")
async def test_defaults_of_jobs(api):
    """One pod once, six tries more."""
    spec = (await api.create(JOBS, job("j")))["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["podReplacementPolicy"]) == ("NonIndexed", "TerminatingOrFailed")


@source("pkg/registry/batch/job/strategy.go")
async def test_a_job_selects_by_its_uid(api):
    """Selector and labels of the template are made by the server."""
    made = await api.create(JOBS, job("j"))
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }


@source("pkg/apis/batch/v1/defaults.go")
async def test_defaults_of_cron_jobs(api):
    """Runs may overlap; three successes and one failure are kept."""
    body = {**meta("c"), "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job("x")["spec"]}, "suspend": True}}
    spec = (await api.create(CRON_JOBS, body))["spec"]
    assert spec["concurrencyPolicy"] == "Allow"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)


@source("pkg/apis/autoscaling/v2/defaults.go")
async def test_defaults_of_autoscalers(api):
    """One replica at least, and 80 % of the CPU requested."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    made = await api.create(SCALERS, {**meta("h"), "spec": {"scaleTargetRef": target, "maxReplicas": 3}})
    assert made["spec"]["minReplicas"] == 1
    assert made["spec"]["metrics"][0]["resource"] == {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80},
    }


@source("pkg/registry/policy/poddisruptionbudget/strategy.go")
async def test_a_new_budget_allows_nothing(api):
    """Its status is what the controller has not yet written."""
    selector = {"matchLabels": {"app": "x"}}
    body = {**meta("b"), "spec": {"minAvailable": 1, "selector": selector}, "status": {"disruptionsAllowed": 9}}
    made = await api.create(BUDGETS, body)
    assert made["status"] == {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
