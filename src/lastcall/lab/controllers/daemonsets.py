"""DaemonSets: a pod on every node that is meant (``k8s.io/kubernetes/pkg/controller/daemon``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lastcall.lab.controllers import daemon_updates, pods, revisions
from lastcall.lab.controllers.actions import Action, Decision, status_patch
from lastcall.lab.controllers.backoffs import Backoff
from lastcall.lab.controllers.daemon_pods import Fit, Fits, Own, Owns, fit, new_pod
from lastcall.lab.controllers.owning import Kind, claim, creation, deletion, interested, labels, selects_all
from lastcall.lab.controllers.view import Object, Ref, View, controller_of, ref

RESOURCE = "daemonsets.apps"
KIND = Kind("apps/v1", "DaemonSet", RESOURCE)
BURST = 250
"""Pods that are made or deleted at once, at most."""


@dataclass(frozen=True)
class DaemonTimes:
    """Seconds between two replacements of a pod that fails: the first time, and at most."""

    first_backoff: float = 1.0
    longest_backoff: float = 900.0


class DaemonSets:
    """Looks at a DaemonSet when it, its pods, its revisions, or a node that matters to it have changed.

    It remembers how often pods have failed on a node, as Kubernetes does: with the process that is forgotten.
    """

    name = "daemonset"
    resources: Sequence[str] = (RESOURCE, "pods", "nodes", revisions.RESOURCE)

    def __init__(self, times: DaemonTimes | None = None) -> None:
        times = times or DaemonTimes()
        self._failures = Backoff(times.first_backoff, times.longest_backoff)
        self._fits = Fits()
        self._owns = Owns()

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The DaemonSets that are concerned."""
        if resource == RESOURCE:
            return [ref(RESOURCE, obj)]
        return _of_node(obj, view) if resource == "nodes" else interested(obj, KIND, view)

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """Pods to be made or deleted, and the status."""
        daemon = view.get(*key)
        if daemon is None or daemon["metadata"].get("deletionTimestamp"):
            self._fits.forget(key)
            self._owns.forget(key)
            return Decision()
        if selects_all(daemon):
            said = "This daemon set is selecting all pods. A non-empty selector is required."
            return Decision((KIND.tell(daemon, "SelectingAll", said, "Warning"),))
        history = revisions.history(daemon, KIND, view, label=revisions.LABEL)
        if history.update is None:
            return Decision(tuple(history.actions))
        found, patches = claim(daemon, KIND, "pods", view)
        if patches:
            return Decision(tuple(patches))
        letters = labels(history.update)[revisions.LABEL]
        own = self._owns.of(key, daemon, letters, found)
        turn = _Turn(daemon, letters, self._fits.of(key, daemon, view), own, self._failures, now)
        actions = turn.managed() or turn.rolled()
        forgotten = _forgotten(daemon, history, own)
        return Decision((*status_patch(key, daemon, turn.status()), *actions, *forgotten), turn.again_in())


def _of_node(node: Object, view: View) -> Iterator[Ref]:
    """Those whose pods should come, go, or be counted otherwise now (``syncNodeUpdate``)."""
    name = node["metadata"]["name"]
    here = {owner["uid"] for pod in view.on_node(name) if (owner := controller_of(pod))}
    gone = view.get("nodes", "", name) is None
    for daemon in view.all(RESOURCE):
        scheduled = daemon["metadata"]["uid"] in here
        astray = (daemon.get("status") or {}).get("numberMisscheduled")
        if gone or fit(daemon, node).run != scheduled or (scheduled and astray):
            yield ref(RESOURCE, daemon)


def _forgotten(daemon: Object, history: revisions.History, own: Sequence[Own]) -> list[Action]:
    """Old revisions that are in use count, but stay (``cleanupHistory``)."""
    used = {one.letters for one in own}
    old = [one for one in history.revisions if one is not history.update]
    live = {one["metadata"]["name"] for one in old if labels(one).get(revisions.LABEL) in used}
    limit = max(0, daemon["spec"].get("revisionHistoryLimit", 10) - len(live))
    current = {history.update["metadata"]["name"]} if history.update else set()
    return revisions.forgotten(history, live | current, limit)


class _Turn:
    """What is done about one DaemonSet now. ``letters`` is the hash of the template as it is."""

    def __init__(
        self,
        daemon: Object,
        letters: str,
        fits: Mapping[str, Fit],
        own: Sequence[Own],
        failures: Backoff,
        now: float,
    ) -> None:
        self._daemon, self._letters, self._fits = daemon, letters, fits
        self._failures, self._now = failures, now
        self._seconds = daemon["spec"].get("minReadySeconds", 0)
        self._by_node: dict[str, list[Own]] = {}
        self._waits: list[float] = []
        for one in own:
            if one.node:
                self._by_node.setdefault(one.node, []).append(one)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def managed(self) -> list[Action]:
        """A pod for each node that should have one, and none elsewhere (``manage``)."""
        missing: list[str] = []
        surplus: list[Object] = []
        told: list[Action] = []
        for name, fits in self._fits.items():
            present = self._by_node.get(name, ())
            if fits.stay and len(present) == 1 and present[0].steady:
                continue  # as almost everywhere
            if fits.run and not present:
                missing.append(name)
            elif fits.stay:
                running = [one for one in present if self._runs(one, name, surplus, told)]
                if self._surge and not running and fits.run:
                    missing.append(name)
                surplus += self._too_many(running)
            else:
                surplus += [one.pod for one in present if not one.pod["metadata"].get("deletionTimestamp")]
        for name, found in self._by_node.items():
            if name not in self._fits:
                surplus += [one.pod for one in found if not one.pod["spec"].get("nodeName")]
        return [*told, *self._made(missing), *self._ended(surplus)]

    def rolled(self) -> list[Action]:
        """The next step of a rolling update."""
        if self._daemon["spec"]["updateStrategy"]["type"] == "OnDelete":
            return []
        if all(one.updated for found in self._by_node.values() for one in found):
            return []
        run = [name for name, fits in self._fits.items() if fits.run]
        by_node = {name: [one.pod for one in found] for name, found in self._by_node.items()}
        found = daemon_updates.steps(self._daemon, run, by_node, self._letters, self._now)
        return [*self._made(found.create), *self._ended(found.delete)]

    def _runs(self, one: Own, node: str, surplus: list[Object], told: list[Action]) -> bool:
        """Whether it is up or comes up; one that has finished is replaced, and one that keeps failing after a while."""
        pod = one.pod
        if one.steady:
            return True
        place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
        if pod["metadata"].get("deletionTimestamp"):
            return False
        if pods.phase(pod) == "Failed":
            # Each generation begins anew: a new template may be the one that works.
            key = (self._daemon["metadata"]["uid"], self._observed, node)
            if left := self._failures.left(key, self._now):
                self._waits.append(left)
                return False
            self._failures.tried(key, self._now)
            message = f"Found failed daemon pod {place}, will try to kill it"
            told.append(KIND.tell(self._daemon, "FailedDaemonPod", message, "Warning"))
        else:
            message = f"Found succeeded daemon pod {place}, will try to delete it"
            told.append(KIND.tell(self._daemon, "SucceededDaemonPod", message))
        surplus.append(pod)
        return False

    def _too_many(self, running: Sequence[Own]) -> list[Object]:
        """All but the oldest; with surge, all but the oldest new and the oldest old one, until that is not needed."""
        if len(running) < 2:
            return []
        ordered = sorted(running, key=_age)
        if not self._surge:
            return [one.pod for one in ordered[1:]]
        new = [one for one in ordered if one.letters == self._letters]
        old = [one for one in ordered if one.letters != self._letters]
        replaced = new and old and (not old[0].ready or self._available(new[0]))
        return [one.pod for one in (*new[1:], *(old if replaced else old[1:]))]

    def _made(self, nodes: Sequence[str]) -> list[Action]:
        made = (new_pod(self._daemon, KIND, node, self._letters) for node in nodes[:BURST])
        return [creation(pod, self._daemon, KIND) for pod in made]

    def _ended(self, surplus: Sequence[Object]) -> Iterator[Action]:
        for pod in surplus[:BURST]:
            yield from deletion(pod, self._daemon, KIND)

    # -- status --------------------------------------------------------------------------------------------------------

    def status(self) -> Object:
        """``updateDaemonSetStatus``: of each node the oldest pod counts."""
        wanted = [name for name, fits in self._fits.items() if fits.run]
        first = {name: found[0] if len(found) == 1 else min(found, key=_age) for name, found in self._by_node.items()}
        there = [first[name] for name in wanted if name in first]
        available = sum(map(self._available, there))
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
        """When a pod counts as available, or may be tried again."""
        own = [one for found in self._by_node.values() for one in found] if self._seconds else ()
        found = [pods.available_in(one.pod, self._seconds, self._now) for one in own]
        return min([*(wait for wait in found if wait), *self._waits], default=None)

    @property
    def _observed(self) -> int:
        return int((self._daemon.get("status") or {}).get("observedGeneration", 0))

    @property
    def _surge(self) -> bool:
        spec = self._daemon["spec"]["updateStrategy"]
        return spec["type"] == "RollingUpdate" and daemon_updates.bounds(self._daemon, 1).surge > 0

    def _available(self, one: Own) -> bool:
        return one.ready and (not self._seconds or pods.available_in(one.pod, self._seconds, self._now) == 0)


def _age(one: Own) -> tuple[bool, str, str]:
    """Those that are on their node come first, then the older ones (``podByCreationTimestampAndPhase``)."""
    metadata = one.pod["metadata"]
    return not one.pod["spec"].get("nodeName"), metadata["creationTimestamp"], metadata["name"]
