"""DaemonSets: one pod on every eligible node (``k8s.io/kubernetes/pkg/controller/daemon``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lastcall_lab.controllers.framework.actions import Action, Decision, status_patches
from lastcall_lab.controllers.framework.failure_backoff import FailureBackoff
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, controller_of, ref_of
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.objects.ownership import (
    OwnerKind,
    affected_workloads,
    claim_objects,
    create_pod_action,
    delete_pod_actions,
    object_labels,
    selects_all,
)
from lastcall_lab.controllers.workloads import daemon_updates, revision_history
from lastcall_lab.controllers.workloads.daemon_pods import (
    DaemonPod,
    DaemonPodCache,
    NodeFit,
    NodeFitCache,
    new_daemon_pod,
    node_fit,
)

RESOURCE = "daemonsets.apps"
KIND = OwnerKind("apps/v1", "DaemonSet", RESOURCE)
BURST = 250
"""Pods that are made or deleted at once, at most."""


@dataclass(frozen=True)
class DaemonSetTimes:
    """Backoff in seconds for the replacement of failing pods: initial and maximum."""

    first_backoff: float = 1.0
    longest_backoff: float = 900.0


class DaemonSetController:
    """Reconciles a DaemonSet when it, its pods, its revisions, or a relevant node has changed.

    Like Kubernetes, it counts pod failures per node in memory, and a restart loses the counts.
    """

    name = "daemonset"
    resources: Sequence[str] = (RESOURCE, "pods", "nodes", revision_history.RESOURCE)

    def __init__(self, times: DaemonSetTimes | None = None) -> None:
        times = times or DaemonSetTimes()
        self._failures = FailureBackoff(times.first_backoff, times.longest_backoff)
        self._fits = NodeFitCache()
        self._owns = DaemonPodCache()

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The affected DaemonSets."""
        if resource == RESOURCE:
            return [ref_of(RESOURCE, obj)]
        return _daemon_sets_of_node(obj, view) if resource == "nodes" else affected_workloads(obj, KIND, view)

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Pods to create or delete, and the status."""
        daemon = view.get(*key)
        if daemon is None or daemon["metadata"].get("deletionTimestamp"):
            self._fits.forget(key)
            self._owns.forget(key)
            return Decision()
        if selects_all(daemon):
            said = "This daemon set is selecting all pods. A non-empty selector is required."
            return Decision((KIND.owner_event(daemon, "SelectingAll", said, "Warning"),))
        history = revision_history.revision_history(daemon, KIND, view, label=revision_history.LABEL)
        if history.update is None:
            return Decision(tuple(history.actions))
        found, patches = claim_objects(daemon, KIND, "pods", view)
        if patches:
            return Decision(tuple(patches))
        letters = object_labels(history.update)[revision_history.LABEL]
        own = self._owns.daemon_pods(key, daemon, letters, found)
        turn = _DaemonSetSync(daemon, letters, self._fits.fits_by_node(key, daemon, view), own, self._failures, now)
        actions = turn.manage_pods() or turn.roll_update()
        forgotten = _expired_revisions(daemon, history, own)
        return Decision((*status_patches(key, daemon, turn.daemon_set_status()), *actions, *forgotten), turn.again_in())


def _daemon_sets_of_node(node: Object, view: View) -> Iterator[ObjectRef]:
    """The DaemonSets whose pods should now run, stop, or count differently (``syncNodeUpdate``)."""
    name = node["metadata"]["name"]
    here = {owner["uid"] for pod in view.on_node(name) if (owner := controller_of(pod))}
    gone = view.get("nodes", "", name) is None
    for daemon in view.all(RESOURCE):
        scheduled = daemon["metadata"]["uid"] in here
        astray = (daemon.get("status") or {}).get("numberMisscheduled")
        if gone or node_fit(daemon, node).run != scheduled or (scheduled and astray):
            yield ref_of(RESOURCE, daemon)


def _expired_revisions(
    daemon: Object, history: revision_history.RevisionHistory, own: Sequence[DaemonPod]
) -> list[Action]:
    """Old revisions in use count towards the limit but stay (``cleanupHistory``)."""
    used = {one.letters for one in own}
    old = [one for one in history.revisions if one is not history.update]
    live = {one["metadata"]["name"] for one in old if object_labels(one).get(revision_history.LABEL) in used}
    limit = max(0, daemon["spec"].get("revisionHistoryLimit", 10) - len(live))
    current = {history.update["metadata"]["name"]} if history.update else set()
    return revision_history.expired_revisions(history, live | current, limit)


class _DaemonSetSync:
    """One sync of a DaemonSet. ``letters`` is the hash of the current template."""

    def __init__(
        self,
        daemon: Object,
        letters: str,
        fits: Mapping[str, NodeFit],
        own: Sequence[DaemonPod],
        failures: FailureBackoff,
        now: float,
    ) -> None:
        self._daemon, self._letters, self._fits = daemon, letters, fits
        self._failures, self._now = failures, now
        self._seconds = daemon["spec"].get("minReadySeconds", 0)
        self._by_node: dict[str, list[DaemonPod]] = {}
        self._waits: list[float] = []
        for one in own:
            if one.node:
                self._by_node.setdefault(one.node, []).append(one)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def manage_pods(self) -> list[Action]:
        """One pod for each eligible node, none elsewhere (``manage``)."""
        missing: list[str] = []
        surplus: list[Object] = []
        told: list[Action] = []
        for name, fits in self._fits.items():
            present = self._by_node.get(name, ())
            if fits.stay and len(present) == 1 and present[0].steady:
                continue  # the common case
            if fits.run and not present:
                missing.append(name)
            elif fits.stay:
                running = [one for one in present if self._is_running(one, name, surplus, told)]
                if self._allows_surge and not running and fits.run:
                    missing.append(name)
                surplus += self._surplus_pods(running)
            else:
                surplus += [one.pod for one in present if not one.pod["metadata"].get("deletionTimestamp")]
        for name, found in self._by_node.items():
            if name not in self._fits:
                surplus += [one.pod for one in found if not one.pod["spec"].get("nodeName")]
        return [*told, *self._create_pods(missing), *self._delete_pods(surplus)]

    def roll_update(self) -> list[Action]:
        """The next step of a rolling update."""
        if self._daemon["spec"]["updateStrategy"]["type"] == "OnDelete":
            return []
        if all(one.updated for found in self._by_node.values() for one in found):
            return []
        run = [name for name, fits in self._fits.items() if fits.run]
        by_node = {name: [one.pod for one in found] for name, found in self._by_node.items()}
        found = daemon_updates.next_update_steps(self._daemon, run, by_node, self._letters, self._now)
        return [*self._create_pods(found.create), *self._delete_pods(found.delete)]

    def _is_running(self, one: DaemonPod, node: str, surplus: list[Object], told: list[Action]) -> bool:
        """Whether the pod runs or starts. Finished pods are replaced, repeatedly failing ones after a backoff."""
        pod = one.pod
        if one.steady:
            return True
        place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
        if pod["metadata"].get("deletionTimestamp"):
            return False
        if pods.pod_phase(pod) == "Failed":
            # Each generation starts without failures: a new template may fix them.
            key = (self._daemon["metadata"]["uid"], self._observed_generation, node)
            if left := self._failures.seconds_left(key, self._now):
                self._waits.append(left)
                return False
            self._failures.record_retry(key, self._now)
            message = f"Found failed daemon pod {place}, will try to kill it"
            told.append(KIND.owner_event(self._daemon, "FailedDaemonPod", message, "Warning"))
        else:
            message = f"Found succeeded daemon pod {place}, will try to delete it"
            told.append(KIND.owner_event(self._daemon, "SucceededDaemonPod", message))
        surplus.append(pod)
        return False

    def _surplus_pods(self, running: Sequence[DaemonPod]) -> list[Object]:
        """All but the oldest pod. During a surge, all but the oldest new and the oldest old one."""
        if len(running) < 2:
            return []
        ordered = sorted(running, key=_age_key)
        if not self._allows_surge:
            return [one.pod for one in ordered[1:]]
        new = [one for one in ordered if one.letters == self._letters]
        old = [one for one in ordered if one.letters != self._letters]
        replaced = new and old and (not old[0].ready or self._is_available(new[0]))
        return [one.pod for one in (*new[1:], *(old if replaced else old[1:]))]

    def _create_pods(self, nodes: Sequence[str]) -> list[Action]:
        made = (new_daemon_pod(self._daemon, KIND, node, self._letters) for node in nodes[:BURST])
        return [create_pod_action(pod, self._daemon, KIND) for pod in made]

    def _delete_pods(self, surplus: Sequence[Object]) -> Iterator[Action]:
        for pod in surplus[:BURST]:
            yield from delete_pod_actions(pod, self._daemon, KIND)

    # -- status --------------------------------------------------------------------------------------------------------

    def daemon_set_status(self) -> Object:
        """``updateDaemonSetStatus``: the oldest pod of each node counts."""
        wanted = [name for name, fits in self._fits.items() if fits.run]
        first = {
            name: found[0] if len(found) == 1 else min(found, key=_age_key) for name, found in self._by_node.items()
        }
        there = [first[name] for name in wanted if name in first]
        available = sum(map(self._is_available, there))
        status = {
            "currentNumberScheduled": len(there),
            "numberMisscheduled": sum(name in first and not fits.run for name, fits in self._fits.items()),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(one.ready for one in there),
            "observedGeneration": self._daemon["metadata"].get("generation", 0),
            "updatedNumberScheduled": sum(one.updated for one in there),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        kept = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        return {name: value for name, value in status.items() if value or name in kept}

    def again_in(self) -> float | None:
        """Seconds until a pod becomes available or may be retried."""
        own = [one for found in self._by_node.values() for one in found] if self._seconds else ()
        found = [pods.seconds_until_available(one.pod, self._seconds, self._now) for one in own]
        return min([*(wait for wait in found if wait), *self._waits], default=None)

    @property
    def _observed_generation(self) -> int:
        return int((self._daemon.get("status") or {}).get("observedGeneration", 0))

    @property
    def _allows_surge(self) -> bool:
        spec = self._daemon["spec"]["updateStrategy"]
        return spec["type"] == "RollingUpdate" and daemon_updates.daemon_update_bounds(self._daemon, 1).surge > 0

    def _is_available(self, one: DaemonPod) -> bool:
        return one.ready and (not self._seconds or pods.seconds_until_available(one.pod, self._seconds, self._now) == 0)


def _age_key(one: DaemonPod) -> tuple[bool, str, str]:
    """Scheduled pods first, then older ones (``podByCreationTimestampAndPhase``)."""
    metadata = one.pod["metadata"]
    return not one.pod["spec"].get("nodeName"), metadata["creationTimestamp"], metadata["name"]
