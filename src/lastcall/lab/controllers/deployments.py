"""Deployments: from one template to the next by ReplicaSets (``k8s.io/kubernetes/pkg/controller/deployment``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lastcall.lab.controllers import deployment_status, pods, replicasets, rollouts
from lastcall.lab.controllers.actions import Action, Create, Decision, Delete, Patch
from lastcall.lab.controllers.deployment_sets import (
    DESIRED,
    bounds_of,
    marks,
    new_set,
    number,
    parts_of,
    refreshed,
    revision,
    same_template,
)
from lastcall.lab.controllers.owning import Kind, claim, interested, selects_all
from lastcall.lab.controllers.view import Object, Ref, View, controller_of, ref

RESOURCE = "deployments.apps"
KIND = Kind("apps/v1", "Deployment", RESOURCE)
_SETS = replicasets.RESOURCE


@dataclass(frozen=True)
class _Facts:
    """One Deployment: the set of its template, if there is one yet, and those of earlier ones, oldest first."""

    deployment: Object
    new: Object | None
    old: Sequence[Object]
    view: View

    @property
    def sets(self) -> list[Object]:
        """All of them."""
        return [*self.old, *([self.new] if self.new else [])]


class Deployments:
    """Looks at a Deployment when it or one of its ReplicaSets has changed; a Recreate, also when their pods go."""

    name = "deployment"
    resources: Sequence[str] = (RESOURCE, _SETS, "pods")

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The Deployments that are concerned."""
        if resource == RESOURCE:
            return [ref(RESOURCE, obj)]
        return interested(obj, KIND, view) if resource == _SETS else _waiting(obj, view)

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """The next step of a rollout, and the status."""
        deployment = view.get(*key)
        if deployment is None:
            return Decision()
        if selects_all(deployment):
            said = "This deployment is selecting all pods. A non-empty selector is required."
            return Decision((KIND.tell(deployment, "SelectingAll", said, "Warning"),))
        sets, patches = claim(deployment, KIND, _SETS, view)
        if patches:
            return Decision(tuple(patches))
        facts = _sorted(deployment, sets, view)
        status = deployment_status.Status(deployment, facts.new, facts.sets, now)
        if deployment["metadata"].get("deletionTimestamp"):
            return Decision(status.patch(progress=False))
        return _step(facts, status)


def _waiting(pod: Object, view: View) -> Iterator[Ref]:
    """The Deployment of a pod, if it waits for all old pods to go."""
    owner = controller_of(pod)
    found = view.get(_SETS, pod["metadata"]["namespace"], owner["name"]) if owner else None
    for key in interested(found, KIND, view) if found else ():
        deployment = view.get(*key)
        if deployment and deployment["spec"]["strategy"]["type"] == "Recreate":
            yield key


def _sorted(deployment: Object, sets: Sequence[Object], view: View) -> _Facts:
    """The oldest set with the template is the one that is meant."""
    ordered = sorted(sets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))
    new = next((one for one in ordered if same_template(one, deployment)), None)
    return _Facts(deployment, new, [one for one in ordered if one is not new], view)


def _step(facts: _Facts, status: deployment_status.Status) -> Decision:
    """One step: the rest follows when its effects are seen."""
    deployment, new = facts.deployment, facts.new
    latest = max((revision(one) for one in facts.old), default=0) + 1
    if new and (change := refreshed(new, deployment, latest)):
        return Decision((_patch(new, change), *status.patch(progress=False)))
    if deployment["spec"].get("paused") or _scaled(facts):
        cleanup = _cleanup(facts) if deployment["spec"].get("paused") else ()
        return Decision((*_resize(facts, _scaling(facts), force=True), *cleanup, *status.patch(progress=False)))
    steps = tuple(_recreate(facts, status, latest) if _recreates(deployment) else _roll(facts, status, latest))
    if not steps and deployment_status.complete(deployment, deployment.get("status") or {}):
        steps = tuple(_cleanup(facts))
    return Decision((*steps, *status.patch()), status.again_in())


def _recreates(deployment: Object) -> bool:
    return str(deployment["spec"]["strategy"]["type"]) == "Recreate"


# -- rolling updates and recreation ------------------------------------------------------------------------------------


def _roll(facts: _Facts, status: deployment_status.Status, latest: int) -> Iterable[Action]:
    if facts.new is None:
        return _made(facts, status, latest)
    allowed = bounds_of(facts.deployment)
    new, old = parts_of([facts.new])[0], parts_of(facts.old)
    size = rollouts.grown(new, old, allowed)
    if size != new.replicas:
        return _resize(facts, {new.name: size})
    return _resize(facts, rollouts.shrunk(new, old, allowed))


def _recreate(facts: _Facts, status: deployment_status.Status, latest: int) -> Iterable[Action]:
    active = {one["metadata"]["name"]: 0 for one in facts.old if one["spec"]["replicas"]}
    if active:
        return _resize(facts, active)
    if any(_runs(one, facts.view) for one in facts.old):
        return ()
    if facts.new is None:
        return _made(facts, status, latest)
    return _resize(facts, {facts.new["metadata"]["name"]: facts.deployment["spec"]["replicas"]})


def _runs(replica_set: Object, view: View) -> bool:
    """Whether a pod of it has not finished; one that is being deleted still runs."""
    if (replica_set.get("status") or {}).get("replicas"):
        return True
    owned = view.owned(replica_set["metadata"]["uid"], "pods")
    return any(pods.phase(pod) not in pods.FINISHED for pod in owned)


def _made(facts: _Facts, status: deployment_status.Status, latest: int) -> Iterator[Action]:
    """The set of a new template; if its name is taken, another one is tried the next time."""
    made = new_set(facts.deployment, facts.old, latest, KIND)
    name, replicas = made["metadata"]["name"], made["spec"]["replicas"]
    if facts.view.get(_SETS, made["metadata"]["namespace"], name):
        status.collided()
        return
    told = KIND.tell(facts.deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
    message = f'Failed to create new replica set "{name}": '
    refused = KIND.tell(facts.deployment, "ReplicaSetCreateError", message + "{error}", "Warning")
    last = facts.view.refusal(Deployments.name, ref(RESOURCE, facts.deployment))
    if last and last.name == name:
        yield from status.refused(message + last.why)
    yield Create(_SETS, made["metadata"]["namespace"], made, told if replicas else None, refused)
    status.created(name, latest)


# -- scaling -----------------------------------------------------------------------------------------------------------


def _scaled(facts: _Facts) -> bool:
    """Whether the number of replicas has changed since the sets were sized."""
    said = [number(one, DESIRED) for one in facts.sets if one["spec"]["replicas"]]
    return any(one is not None and one != facts.deployment["spec"]["replicas"] for one in said)


def _scaling(facts: _Facts) -> Mapping[str, int]:
    """The only active set is as large as wanted; several of them, in the middle of a rollout, change in proportion."""
    replicas = facts.deployment["spec"]["replicas"]
    active = [one for one in facts.sets if one["spec"]["replicas"]]
    only = active[0] if len(active) == 1 else None if active else facts.new or (facts.old[-1] if facts.old else None)
    if only:
        return {only["metadata"]["name"]: replicas}
    if facts.new and _saturated(facts.new, replicas):
        return {one["metadata"]["name"]: 0 for one in active if one is not facts.new}
    if _recreates(facts.deployment):
        return {}
    present = (facts.deployment.get("status") or {}).get("replicas") or 0
    return rollouts.proportional(parts_of(active), bounds_of(facts.deployment), present=present)


def _saturated(new: Object, replicas: int) -> bool:
    available = (new.get("status") or {}).get("availableReplicas", 0)
    return bool(new["spec"]["replicas"] == number(new, DESIRED) == available == replicas)


def _resize(facts: _Facts, sizes: Mapping[str, int], *, force: bool = False) -> Iterator[Action]:
    """Each set also notes how large the Deployment is; ``force``: even if its size stays the same."""
    for one in facts.sets:
        name, before = one["metadata"]["name"], one["spec"]["replicas"]
        size = sizes.get(name, before)
        wanted = marks(facts.deployment)
        stale = force and name in sizes and not wanted.items() <= (one["metadata"].get("annotations") or {}).items()
        if size == before and not stale:
            continue
        yield _patch(one, {"metadata": {"annotations": wanted}, "spec": {"replicas": size}})
        if size != before:
            way = "up" if size > before else "down"
            said = f"Scaled {way} replica set {name} from {before} to {size}"
            yield KIND.tell(facts.deployment, "ScalingReplicaSet", said)


def _patch(replica_set: Object, body: Object) -> Patch:
    metadata = replica_set["metadata"]
    return Patch(ref(_SETS, replica_set), body, uid=metadata["uid"], revision=metadata["resourceVersion"])


# -- history -----------------------------------------------------------------------------------------------------------


def _cleanup(facts: _Facts) -> Iterator[Action]:
    """Old sets beyond ``revisionHistoryLimit`` go, the oldest revisions first, if they have no pods any more."""
    limit = facts.deployment["spec"].get("revisionHistoryLimit")
    old = [one for one in facts.old if not one["metadata"].get("deletionTimestamp")]
    if limit is None or limit == 2**31 - 1:
        return
    for one in sorted(old, key=revision)[: max(0, len(old) - limit)]:
        status, metadata = one.get("status") or {}, one["metadata"]
        seen = status.get("observedGeneration", 0) >= metadata.get("generation", 0)
        if seen and not status.get("replicas") and not one["spec"]["replicas"]:
            yield Delete(ref(_SETS, one), uid=metadata["uid"])
