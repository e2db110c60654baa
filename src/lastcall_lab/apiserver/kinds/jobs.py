"""Jobs and CronJobs (``pkg/apis/batch``, ``pkg/registry/batch``)."""

import functools
import zoneinfo
from collections.abc import Collection, Iterable, Iterator, Mapping

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.job_failures import check_failure_policy
from lastcall_lab.apiserver.kinds.job_status import check_status
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.pod_defaults import set_template_defaults
from lastcall_lab.apiserver.kinds.pod_diff import inner_spec, inner_template
from lastcall_lab.apiserver.kinds.workloads import MISMATCH, BaseWorkloadKind, check_template
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions, DependentsPolicy, KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_UID, _NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_OLD_UID, _OLD_NAME = "controller-uid", "job-name"
_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_NUMBERS_OF_INDEXES = ("backoffLimitPerIndex", "maxFailedIndexes")
_RIGID = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
_MOST_INDEXES = 100_000
_LONGEST_MANAGER = 63
_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set"
    " propagationPolicy=Orphan to suppress this warning"
)


class JobKind(BaseWorkloadKind):
    """Pods that run to completion. The selector and its labels are generated from the job's uid."""

    dependents = DependentsPolicy.ORPHANED

    def default(self, obj: Object) -> None:
        """One pod, six retries."""
        super().default(obj)
        spec = obj["spec"]
        set_job_defaults(spec)
        common_rules.fill_missing(spec, manualSelector=False)
        if not obj["metadata"].get("labels") and (labels := spec["template"]["metadata"].get("labels")):
            obj["metadata"]["labels"] = dict(labels)

    def prepare_create(self, obj: Object) -> None:
        """Generates selector and labels; a job without labels gets those of its template."""
        super().prepare_create(obj)
        spec = obj["spec"]
        if spec["manualSelector"]:
            return
        uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
        template, own = common_rules.sub_object(spec["template"]["metadata"], "labels"), obj["metadata"].get("labels")
        follows = not own or own == template
        for old, new, value in ((_OLD_NAME, _NAME, name), (_OLD_UID, _UID, uid)):
            if old not in template:
                template.update({old: value, new: value})
        common_rules.sub_object(common_rules.sub_object(spec, "selector"), "matchLabels").setdefault(_UID, uid)
        if follows:
            obj["metadata"]["labels"] = dict(template)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateJob``."""
        spec = obj["spec"]
        yield from _selector_violations(obj)
        yield from check_job_spec(spec, "spec")
        selector = spec.get("selector")
        if selector is None:
            yield field_errors.value_required("spec.selector")
        yield from validate_selector(selector, "spec.selector")
        labels = spec["template"]["metadata"].get("labels")
        if not common_rules.selects_labels(selector, labels or {}):
            yield field_errors.invalid("spec.template.metadata.labels", labels, MISMATCH)
        yield from _hostnames(obj)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateJobUpdate``: most of the template is immutable."""
        after, before = new["spec"], old["spec"]
        yield from (cause for cause in self.validate(new) if cause.field != "metadata.name")
        yield from _completions(after, before)
        yield from common_rules.check_immutable(after, before, "spec", "selector")
        yield from _check_template(after, before, waits=_waits(old))
        yield from common_rules.check_immutable(after, before, "spec", *_RIGID)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """See ``job_status``."""
        return check_status(new, old)

    def deletion_warnings(self, options: DeleteOptions) -> Iterable[str]:
        """Warns that the pods are orphaned by default, which most users do not expect."""
        return (_ORPHANS,) if options.orphan is None and options.propagation is None else ()

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The number of succeeded pods."""
        return {"status.successful": str((obj.get("status") or {}).get("succeeded") or 0)}


class CronJobKind(KindBehaviour):
    """Jobs on a schedule. No controller of the lab creates them."""

    has_generation = True
    has_status = True
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """Allows concurrent jobs; keeps three successful ones and one failed one."""
        spec = common_rules.fill_missing(
            common_rules.sub_object(obj, "spec"), successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1
        )
        common_rules.fill_missing(spec, suspend=False, concurrencyPolicy="Allow")
        template = common_rules.sub_object(spec, "jobTemplate")
        common_rules.sub_object(template, "metadata")
        inner = common_rules.sub_object(template, "spec")
        set_template_defaults(common_rules.sub_object(inner, "template"))
        common_rules.sub_object(obj, "status")

    def prepare_create(self, obj: Object) -> None:
        """Clears the status."""
        obj["status"] = {}

    def validate_name(self, name: str) -> str:
        """Job names add eleven characters to it."""
        return name_rules.subdomain_error(name) or ("must be no more than 52 characters" if len(name) > 52 else "")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateCronJobSpec``."""
        spec = obj["spec"]
        if not (schedule := spec.get("schedule", "")):
            yield field_errors.value_required("spec.schedule")
        elif len(schedule.split()) != 5 and not schedule.startswith(("@", "TZ=", "CRON_TZ=")):
            why = f"expected exactly 5 fields, found {len(schedule.split())}: [{' '.join(schedule.split())}]"
            yield field_errors.invalid("spec.schedule", schedule, why)
        yield from _time_zone(spec.get("timeZone"), "spec.timeZone")
        yield from common_rules.check_not_negative(spec, "spec", "startingDeadlineSeconds")
        yield from common_rules.check_one_of(
            spec["concurrencyPolicy"], "spec.concurrencyPolicy", "Allow", "Forbid", "Replace"
        )
        template = spec["jobTemplate"]["spec"]
        yield from check_job_spec(template, "spec.jobTemplate.spec")
        if template.get("selector") is not None:
            why = "`selector` will be auto-generated"
            yield field_errors.invalid("spec.jobTemplate.spec.selector", template["selector"], why)
        yield from common_rules.check_not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def set_job_defaults(spec: Object) -> None:
    """``SetDefaults_Job``."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    limit = 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6
    replacement = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    common_rules.fill_missing(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", suspend=False)
    common_rules.fill_missing(spec, podReplacementPolicy=replacement)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition["status"] = condition.get("status") or "True"


def check_job_spec(spec: Object, path: str) -> Iterator[Cause]:
    """``validateJobSpec``."""
    yield from common_rules.check_not_negative(spec, path, *_NUMBERS, *_NUMBERS_OF_INDEXES)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield field_errors.value_required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _mode(spec, path)
    failing, policy = spec.get("podFailurePolicy") is not None, spec.get("podReplacementPolicy")
    supported = ("Failed",) if failing else ("Failed", "TerminatingOrFailed")
    yield from common_rules.check_one_of(policy, f"{path}.podReplacementPolicy", *supported)
    yield from check_failure_policy(spec, path)
    yield from _managed_by(spec.get("managedBy"), f"{path}.managedBy")
    yield from check_template(spec["template"], f"{path}.template")
    restart, path = spec["template"]["spec"].get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    if restart == "Always":
        yield field_errors.value_required(path, 'valid values: "OnFailure", "Never"')
    elif restart not in ("OnFailure", "Never"):
        yield field_errors.not_supported(path, restart, ["OnFailure", "Never"])
    elif failing and restart != "Never":
        yield field_errors.invalid(path, restart, 'only "Never" is supported when podFailurePolicy is specified')


def _managed_by(name: str | None, path: str) -> Iterator[Cause]:
    """The responsible controller, if it is not the job controller (``IsDomainPrefixedPath``)."""
    if name is None:
        return
    domain, slash, rest = name.partition("/")
    if not slash or not domain or not rest:
        yield field_errors.invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    elif wrong := name_rules.subdomain_error(domain):
        yield field_errors.invalid(path, domain, wrong)
    if len(name) > _LONGEST_MANAGER:
        yield field_errors.too_long(path, _LONGEST_MANAGER)


def _time_zone(name: str | None, path: str) -> Iterator[Cause]:
    """``validateTimeZone``."""
    if name == "":
        yield field_errors.invalid(path, name, "timeZone must be nil or non-empty string")
    elif name is not None and name.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield field_errors.invalid(path, name, why)
    elif name is not None and _zones() and name not in _zones():
        yield field_errors.invalid(path, name, f"unknown time zone {name}")


@functools.cache
def _zones() -> Collection[str]:
    """The time zones of this machine; empty without a time zone database."""
    return frozenset(zoneinfo.available_timezones())


def _mode(spec: Object, path: str) -> Iterator[Cause]:
    mode = spec.get("completionMode")
    yield from common_rules.check_one_of(mode, f"{path}.completionMode", "NonIndexed", "Indexed")
    if mode == "Indexed":
        completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
        if completions is None:
            yield field_errors.value_required(f"{path}.completions", "when completion mode is Indexed")
        if (spec.get("parallelism") or 0) > _MOST_INDEXES:
            why = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
            yield field_errors.invalid(f"{path}.parallelism", spec["parallelism"], why)
        if completions is not None and failed is not None and failed > completions:
            yield field_errors.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    elif mode in (None, "NonIndexed"):
        for name in (*_NUMBERS_OF_INDEXES, "successPolicy"):
            if spec.get(name) is not None:
                yield field_errors.invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")


def _selector_violations(job: Object) -> Iterator[Cause]:
    """``validateGeneratedSelector``."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    labels = spec["template"]["metadata"].get("labels") or {}
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    expected = {_OLD_UID: uid, _OLD_NAME: name, _UID: uid, _NAME: name}
    for key, value in expected.items():
        if key not in labels:
            yield field_errors.value_required("spec.template.metadata.labels", f"must be '{value}'")
        elif labels[key] != value:
            why = f"must be '{value}'"
            yield field_errors.invalid("spec.template.metadata.labels", labels, why)
    if not common_rules.selects_labels(spec["selector"], expected):
        yield field_errors.invalid("spec.selector", spec["selector"], "`selector` not auto-generated")


def _hostnames(job: Object) -> Iterator[Cause]:
    spec, name = job["spec"], job["metadata"].get("name", "")
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        longest = f"{name}-{spec['completions'] - 1}"
        if name_rules.dns_label_error(longest):
            why = f"will not able to create pod with invalid DNS label: {longest}"
            yield field_errors.invalid("metadata.name", name, why)


def _completions(new: Object, old: Object) -> Iterator[Cause]:
    """An Indexed Job can change completions together with parallelism."""
    after, before = new.get("completions"), old.get("completions")
    if after == before:
        return
    if new.get("completionMode") != "Indexed" or None in (after, before):
        yield field_errors.invalid("spec.completions", after, common_rules.IMMUTABLE)
    elif after != new.get("parallelism") or before != old.get("parallelism"):
        why = "can only be modified in tandem with spec.parallelism"
        yield field_errors.invalid("spec.completions", after, why)


def _waits(job: Object) -> bool:
    """Whether the job is suspended and has not started."""
    return bool(job["spec"].get("suspend")) and not (job.get("status") or {}).get("startTime")


def _check_template(new: Object, old: Object, *, waits: bool) -> Iterator[Cause]:
    """``validatePodTemplateUpdate``: while the job waits, scheduling directives and resources may change."""
    template = new["template"]
    if not waits and template != old["template"]:
        yield field_errors.invalid("spec.template", inner_template(template), common_rules.IMMUTABLE)
    if waits and template["spec"] != _schedulable(new, old)["spec"]:
        yield field_errors.invalid("spec.template.spec", inner_spec(template["spec"]), common_rules.IMMUTABLE)


def _with_new_resources(containers: list[Object], wanted: list[Object]) -> list[Object]:
    """The old containers with the new resources, if they have the same names."""
    if [one["name"] for one in containers] != [one["name"] for one in wanted]:
        return containers
    return [{**old, "resources": new.get("resources")} for old, new in zip(containers, wanted, strict=True)]


def _schedulable(new: Object, old: Object) -> Object:
    """The old template with the new scheduling directives and resources."""
    template, wanted = old["template"], new["template"]
    spec = {name: value for name, value in template["spec"].items() if name not in _DIRECTIVES}
    spec.update({name: wanted["spec"][name] for name in _DIRECTIVES if name in wanted["spec"]})
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = _with_new_resources(spec[name], wanted["spec"].get(name) or [])
    metadata = {k: v for k, v in template["metadata"].items() if k not in ("labels", "annotations")}
    metadata.update({k: wanted["metadata"][k] for k in ("labels", "annotations") if k in wanted["metadata"]})
    return {**template, "metadata": metadata, "spec": spec}
