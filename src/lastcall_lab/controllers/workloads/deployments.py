"""Deployments: rollouts between templates through ReplicaSets (``k8s.io/kubernetes/pkg/controller/deployment``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lastcall_lab.controllers.framework.actions import Action, CreateObject, Decision, DeleteObject, PatchObject
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, controller_of, ref_of
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.objects.ownership import OwnerKind, affected_workloads, claim_objects, selects_all
from lastcall_lab.controllers.workloads import deployment_status, replica_sets, rollout_sizes
from lastcall_lab.controllers.workloads.deployment_sets import (
    DESIRED,
    annotation_number,
    is_same_template,
    new_replica_set,
    refresh_patch,
    replica_counts,
    revision_number,
    rollout_bounds_of,
    size_annotations,
)

RESOURCE = "deployments.apps"
KIND = OwnerKind("apps/v1", "Deployment", RESOURCE)
_SETS = replica_sets.RESOURCE


@dataclass(frozen=True)
class _DeploymentSets:
    """One Deployment with the set of its current template, if it exists, and the old sets, oldest first."""

    deployment: Object
    new: Object | None
    old: Sequence[Object]
    view: View

    @property
    def all_sets(self) -> list[Object]:
        """All sets."""
        return [*self.old, *([self.new] if self.new else [])]


class DeploymentController:
    """Reconciles a Deployment when it or a ReplicaSet changes; a Recreate also when its pods are deleted."""

    name = "deployment"
    resources: Sequence[str] = (RESOURCE, _SETS, "pods")

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The affected Deployments."""
        if resource == RESOURCE:
            return [ref_of(RESOURCE, obj)]
        return affected_workloads(obj, KIND, view) if resource == _SETS else _recreate_waiting_for(obj, view)

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The next step of a rollout, and the status."""
        deployment = view.get(*key)
        if deployment is None:
            return Decision()
        if selects_all(deployment):
            said = "This deployment is selecting all pods. A non-empty selector is required."
            return Decision((KIND.owner_event(deployment, "SelectingAll", said, "Warning"),))
        sets, patches = claim_objects(deployment, KIND, _SETS, view)
        if patches:
            return Decision(tuple(patches))
        facts = _sort_sets(deployment, sets, view)
        status = deployment_status.DeploymentStatusBuilder(deployment, facts.new, facts.all_sets, now)
        if deployment["metadata"].get("deletionTimestamp"):
            return Decision(status.status_patches(progress=False))
        return _next_step(facts, status)


def _recreate_waiting_for(pod: Object, view: View) -> Iterator[ObjectRef]:
    """The Deployment of a pod, if it waits until all old pods are gone."""
    owner = controller_of(pod)
    found = view.get(_SETS, pod["metadata"]["namespace"], owner["name"]) if owner else None
    for key in affected_workloads(found, KIND, view) if found else ():
        deployment = view.get(*key)
        if deployment and deployment["spec"]["strategy"]["type"] == "Recreate":
            yield key


def _sort_sets(deployment: Object, sets: Sequence[Object], view: View) -> _DeploymentSets:
    """The oldest set with the template is the current one."""
    ordered = sorted(sets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))
    new = next((one for one in ordered if is_same_template(one, deployment)), None)
    return _DeploymentSets(deployment, new, [one for one in ordered if one is not new], view)


def _next_step(facts: _DeploymentSets, status: deployment_status.DeploymentStatusBuilder) -> Decision:
    """One step; the next one follows when its effects are visible."""
    deployment, new = facts.deployment, facts.new
    latest = max((revision_number(one) for one in facts.old), default=0) + 1
    if new and (change := refresh_patch(new, deployment, latest)):
        return Decision((_replica_set_patch(new, change), *status.status_patches(progress=False)))
    if deployment["spec"].get("paused") or _is_scaling_event(facts):
        cleanup = _clean_up_sets(facts) if deployment["spec"].get("paused") else ()
        return Decision(
            (*_resize_sets(facts, _scaled_sizes(facts), force=True), *cleanup, *status.status_patches(progress=False))
        )
    steps = tuple(
        _recreate_step(facts, status, latest) if _is_recreate(deployment) else _rolling_step(facts, status, latest)
    )
    if not steps and deployment_status.is_rollout_complete(deployment, deployment.get("status") or {}):
        steps = tuple(_clean_up_sets(facts))
    return Decision((*steps, *status.status_patches()), status.again_in())


def _is_recreate(deployment: Object) -> bool:
    return str(deployment["spec"]["strategy"]["type"]) == "Recreate"


# -- rolling updates and recreation ------------------------------------------------------------------------------------


def _rolling_step(
    facts: _DeploymentSets, status: deployment_status.DeploymentStatusBuilder, latest: int
) -> Iterable[Action]:
    if facts.new is None:
        return _create_set(facts, status, latest)
    allowed = rollout_bounds_of(facts.deployment)
    new, old = replica_counts([facts.new])[0], replica_counts(facts.old)
    size = rollout_sizes.new_set_size(new, old, allowed)
    if size != new.replicas:
        return _resize_sets(facts, {new.name: size})
    return _resize_sets(facts, rollout_sizes.old_set_sizes(new, old, allowed))


def _recreate_step(
    facts: _DeploymentSets, status: deployment_status.DeploymentStatusBuilder, latest: int
) -> Iterable[Action]:
    active = {one["metadata"]["name"]: 0 for one in facts.old if one["spec"]["replicas"]}
    if active:
        return _resize_sets(facts, active)
    if any(_has_running_pods(one, facts.view) for one in facts.old):
        return ()
    if facts.new is None:
        return _create_set(facts, status, latest)
    return _resize_sets(facts, {facts.new["metadata"]["name"]: facts.deployment["spec"]["replicas"]})


def _has_running_pods(replica_set: Object, view: View) -> bool:
    """Whether a pod of the set is unfinished; a pod being deleted still runs."""
    if (replica_set.get("status") or {}).get("replicas"):
        return True
    owned = view.controlled_by(replica_set["metadata"]["uid"], "pods")
    return any(pods.pod_phase(pod) not in pods.FINISHED for pod in owned)


def _create_set(
    facts: _DeploymentSets, status: deployment_status.DeploymentStatusBuilder, latest: int
) -> Iterator[Action]:
    """Creates the set of a new template. If the name is taken, the next attempt uses another one."""
    made = new_replica_set(facts.deployment, facts.old, latest, KIND)
    name, replicas = made["metadata"]["name"], made["spec"]["replicas"]
    if facts.view.get(_SETS, made["metadata"]["namespace"], name):
        status.count_collision()
        return
    told = KIND.owner_event(facts.deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
    message = f'Failed to create new replica set "{name}": '
    refused = KIND.owner_event(facts.deployment, "ReplicaSetCreateError", message + "{error}", "Warning")
    last = facts.view.last_refusal(DeploymentController.name, ref_of(RESOURCE, facts.deployment))
    if last and last.name == name:
        yield from status.refuse_creation(message + last.why)
    yield CreateObject(_SETS, made["metadata"]["namespace"], made, told if replicas else None, refused)
    status.set_created(name, latest)


# -- scaling -----------------------------------------------------------------------------------------------------------


def _is_scaling_event(facts: _DeploymentSets) -> bool:
    """Whether the number of replicas has changed since the sets were last sized."""
    said = [annotation_number(one, DESIRED) for one in facts.all_sets if one["spec"]["replicas"]]
    return any(one is not None and one != facts.deployment["spec"]["replicas"] for one in said)


def _scaled_sizes(facts: _DeploymentSets) -> Mapping[str, int]:
    """A single active set gets the full size; several sets in mid-rollout scale proportionally."""
    replicas = facts.deployment["spec"]["replicas"]
    active = [one for one in facts.all_sets if one["spec"]["replicas"]]
    only = active[0] if len(active) == 1 else None if active else facts.new or (facts.old[-1] if facts.old else None)
    if only:
        return {only["metadata"]["name"]: replicas}
    if facts.new and _is_saturated(facts.new, replicas):
        return {one["metadata"]["name"]: 0 for one in active if one is not facts.new}
    if _is_recreate(facts.deployment):
        return {}
    present = (facts.deployment.get("status") or {}).get("replicas") or 0
    return rollout_sizes.proportional_sizes(
        replica_counts(active), rollout_bounds_of(facts.deployment), present=present
    )


def _is_saturated(new: Object, replicas: int) -> bool:
    available = (new.get("status") or {}).get("availableReplicas", 0)
    return bool(new["spec"]["replicas"] == annotation_number(new, DESIRED) == available == replicas)


def _resize_sets(facts: _DeploymentSets, sizes: Mapping[str, int], *, force: bool = False) -> Iterator[Action]:
    """Each set also records the Deployment's size; ``force``: even if its own size is unchanged."""
    for one in facts.all_sets:
        name, before = one["metadata"]["name"], one["spec"]["replicas"]
        size = sizes.get(name, before)
        wanted = size_annotations(facts.deployment)
        stale = force and name in sizes and not wanted.items() <= (one["metadata"].get("annotations") or {}).items()
        if size == before and not stale:
            continue
        yield _replica_set_patch(one, {"metadata": {"annotations": wanted}, "spec": {"replicas": size}})
        if size != before:
            way = "up" if size > before else "down"
            said = f"Scaled {way} replica set {name} from {before} to {size}"
            yield KIND.owner_event(facts.deployment, "ScalingReplicaSet", said)


def _replica_set_patch(replica_set: Object, body: Object) -> PatchObject:
    metadata = replica_set["metadata"]
    return PatchObject(ref_of(_SETS, replica_set), body, uid=metadata["uid"], revision=metadata["resourceVersion"])


# -- history -----------------------------------------------------------------------------------------------------------


def _clean_up_sets(facts: _DeploymentSets) -> Iterator[Action]:
    """Deletes old sets without pods beyond ``revisionHistoryLimit``, oldest revisions first."""
    limit = facts.deployment["spec"].get("revisionHistoryLimit")
    old = [one for one in facts.old if not one["metadata"].get("deletionTimestamp")]
    if limit is None or limit == 2**31 - 1:
        return
    for one in sorted(old, key=revision_number)[: max(0, len(old) - limit)]:
        status, metadata = one.get("status") or {}, one["metadata"]
        seen = status.get("observedGeneration", 0) >= metadata.get("generation", 0)
        if seen and not status.get("replicas") and not one["spec"]["replicas"]:
            yield DeleteObject(ref_of(_SETS, one), uid=metadata["uid"])
