"""What workloads and jobs may say: each case is a rule and the field that breaks it."""

import pytest
from support.conformance.api_client import FORBIDDEN, INVALID, REQUIRED, UNSUPPORTED, causes
from support.conformance.objects import changed, job, workload

from lastcall.adapters.kube.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS

source = pytest.mark.source
APPS = "pkg/apis/apps/validation/validation.go"
BATCH = "pkg/apis/batch/validation/validation.go"

WORKLOAD_RULES = [
    (DEPLOYMENTS, {"spec.selector": None}, REQUIRED, "spec.selector"),
    (DEPLOYMENTS, {"spec.selector": {}}, INVALID, "spec.selector"),
    (DEPLOYMENTS, {"spec.template.metadata.labels": {"other": "x"}}, INVALID, "spec.template.metadata.labels"),
    (DEPLOYMENTS, {"spec.replicas": -1}, INVALID, "spec.replicas"),
    (DEPLOYMENTS, {"spec.template.spec.restartPolicy": "Never"}, UNSUPPORTED, "spec.template.spec.restartPolicy"),
    (DEPLOYMENTS, {"spec.strategy": {"type": "Big"}}, UNSUPPORTED, "spec.strategy"),
    (
        DEPLOYMENTS,
        {"spec.strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        FORBIDDEN,
        "spec.strategy.rollingUpdate",
    ),
    (
        DEPLOYMENTS,
        {"spec.strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        INVALID,
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    (
        DEPLOYMENTS,
        {"spec.strategy": {"rollingUpdate": {"maxUnavailable": "110%"}}},
        INVALID,
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    (
        DEPLOYMENTS,
        {"spec.progressDeadlineSeconds": 5, "spec.minReadySeconds": 5},
        INVALID,
        "spec.progressDeadlineSeconds",
    ),
    (REPLICA_SETS, {"spec.minReadySeconds": -1}, INVALID, "spec.minReadySeconds"),
    (STATEFUL_SETS, {"spec.podManagementPolicy": "Wild"}, INVALID, "spec.podManagementPolicy"),
    (STATEFUL_SETS, {"spec.updateStrategy": {"type": "x"}}, INVALID, "spec.updateStrategy"),
    (
        STATEFUL_SETS,
        {"spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}},
        INVALID,
        "spec.updateStrategy.rollingUpdate.partition",
    ),
    (STATEFUL_SETS, {"spec.ordinals": {"start": -1}}, INVALID, "spec.ordinals.start"),
    (
        STATEFUL_SETS,
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "x", "whenScaled": "Retain"}},
        UNSUPPORTED,
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
    ),
    (
        DAEMON_SETS,
        {
            "spec.replicas": None,
            "spec.updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        },
        INVALID,
        "spec.updateStrategy.rollingUpdate.maxSurge",
    ),
    (
        DAEMON_SETS,
        {"spec.replicas": None, "spec.template.spec.restartPolicy": "OnFailure"},
        UNSUPPORTED,
        "spec.template.spec.restartPolicy",
    ),
]


@source(APPS)
@pytest.mark.parametrize(
    ("kind", "changes", "reason", "field"),
    WORKLOAD_RULES,
    ids=[f"{k.plural}-{r}-{f}" for k, _, r, f in WORKLOAD_RULES],
)
async def test_workloads_that_are_refused(api, kind, changes, reason, field):
    """422 with reason and field."""
    body = workload("w")
    for path, value in changes.items():
        body = changed(body, path, value)
    status = await api.create(kind, body).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


JOB_RULES = [
    ({"parallelism": -1}, INVALID, "spec.parallelism"),
    ({"backoffLimit": -1}, INVALID, "spec.backoffLimit"),
    ({"completionMode": "Indexed", "parallelism": 1}, REQUIRED, "spec.completions"),
    ({"completionMode": "Wild"}, UNSUPPORTED, "spec.completionMode"),
    ({"selector": {"matchLabels": {"a": "b"}}}, INVALID, "spec.selector"),
    ({"ttlSecondsAfterFinished": -1}, INVALID, "spec.ttlSecondsAfterFinished"),
    ({"podReplacementPolicy": "Never"}, UNSUPPORTED, "spec.podReplacementPolicy"),
    ({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}, INVALID, "spec.podFailurePolicy.rules[0]"),
    ({"managedBy": "nobody"}, INVALID, "spec.managedBy"),
]


@source(BATCH)
@pytest.mark.parametrize(("spec", "reason", "field"), JOB_RULES, ids=[f"{r}-{f}" for _, r, f in JOB_RULES])
async def test_jobs_that_are_refused(api, spec, reason, field):
    """422 with reason and field."""
    status = await api.create(JOBS, job("j", **spec)).refused(422, "Invalid")
    assert (reason, field) in causes(status), status["message"]


@source(BATCH)
@pytest.mark.parametrize("policy", ["Always", ""])
async def test_pods_of_jobs_end(api, policy):
    """A job's template says Never or OnFailure."""
    body = changed(job("j"), "spec.template.spec.restartPolicy", policy or None)
    status = await api.create(JOBS, body).refused(422, "Invalid")
    assert causes(status)[0][1] == "spec.template.spec.restartPolicy"


@source("pkg/registry/batch/job/strategy.go")
async def test_a_suspended_job_may_be_scheduled_otherwise(api):
    """While it waits, its template's node selector may change (KEP-2926)."""
    await api.create(JOBS, job("j"))
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    assert (await api.patch(JOBS, "j", patch))["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}


@source("pkg/registry/batch/job/strategy.go")
async def test_a_job_changes_how_many_run(api):
    """parallelism is free, completions are not."""
    await api.create(JOBS, job("j"))
    assert (await api.patch(JOBS, "j", {"spec": {"parallelism": 3}}))["spec"]["parallelism"] == 3
    status = await api.patch(JOBS, "j", {"spec": {"completions": 3}}).refused(422, "Invalid")
    assert causes(status) == [(INVALID, "spec.completions")]
