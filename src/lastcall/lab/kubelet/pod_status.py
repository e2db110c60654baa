"""A pod's status as a kubelet writes it (pure; ``kubelet_pods.go: generateAPIPodStatus``, ``status/generate.go``)."""

from collections.abc import Iterator, Mapping
from typing import Any

from lastcall import names
from lastcall.adapters.kube.resources import Object
from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.kubelet.containers import init_containers, initialized, is_sidecar
from lastcall.lab.kubelet.facts import SCHEME, ContainerFacts, Ended, PodFacts, Running, Waiting
from lastcall.model.pods import FINISHED

_NOTHING: tuple[Any, ...] = (None, "", {}, [])


def status(pod: Object, facts: PodFacts, now: float) -> Object:
    """The whole status; ``now`` in seconds since 1970.

    A condition that says what the pod's status says already keeps the time of its last transition.
    """
    said = phase(pod, facts)
    answer: Object = {
        "phase": said,
        "conditions": _conditions(pod, facts, said, now),
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
    }
    if facts.reason:
        answer |= {"reason": facts.reason, "message": facts.message}
    if facts.started_at is not None:
        answer["startTime"] = timestamp(facts.started_at)
    if facts.address:
        answer |= {"podIP": facts.address, "podIPs": [{"ip": facts.address}]}
    if generation := pod["metadata"].get("generation"):
        answer["observedGeneration"] = generation
    init = init_containers(pod)
    if init:
        answer["initContainerStatuses"] = [_container(pod, one, facts, init=True) for one in init]
    answer["containerStatuses"] = [_container(pod, one, facts, init=False) for one in pod["spec"]["containers"]]
    return answer


def rejected(pod: Object, facts: PodFacts) -> Object:
    """Of a pod that is not admitted: no more than that (``kubelet.go: rejectPod``)."""
    before = (pod.get("status") or {}).get("conditions") or []
    said: Object = {"phase": "Failed", "reason": facts.reason, "message": facts.message, "conditions": before}
    if facts.started_at is not None:
        said["startTime"] = timestamp(facts.started_at)
    return said


def patch(new: Object, old: Mapping[str, Any], uid: str) -> Object | None:
    """A strategic merge patch of the status with the uid as its precondition; None if nothing is to be said."""
    changed = {name: value for name, value in new.items() if not _same(name, value, old.get(name))}
    gone = {name: None for name in ("reason", "message") if name in old and name not in new}
    if not changed and not gone:
        return None
    if "conditions" in changed:
        before = {one["type"]: one for one in old.get("conditions") or ()}
        changed["conditions"] = [_replacing(before.get(one["type"], {}), one) for one in new["conditions"]]
    for name in ("podIPs", "hostIPs"):
        if name in changed:
            changed[name] = changed[name] + [_away(one) for one in old.get(name) or () if one not in changed[name]]
    return {"metadata": {"uid": uid}, "status": {**changed, **gone}}


def _away(address: Object) -> Object:
    """They merge addresses too."""
    return {**address, "$patch": "delete"}


def _replacing(before: Mapping[str, Any], condition: Object) -> Object:
    """Such patches merge conditions: what one does not say any more must be taken away."""
    return {**{name: None for name in before if name not in condition}, **condition}


def _same(name: str, new: Any, old: Any) -> bool:
    """Whether a field says the same: what is empty is as good as not there, conditions are known by their types."""
    if name != "conditions":
        return _alike(new, old)
    return _alike({one["type"]: one for one in new or ()}, {one["type"]: one for one in old or ()})


def _alike(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_alike(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(map(_alike, one, other))
    return one in _NOTHING and other in _NOTHING


# -- phase -------------------------------------------------------------------------------------------------------------


def phase(pod: Object, facts: PodFacts) -> str:
    """``kubelet_pods.go: getPhase``; a phase that is final stays."""
    before = (pod.get("status") or {}).get("phase", "")
    if facts.phase or before in FINISHED:
        return facts.phase or before
    policy = pod["spec"].get("restartPolicy", "Always")
    if facts.over:
        return _final(pod, facts)
    if facts.leaving and before:
        return str(before)
    if not initialized(pod, facts):
        return "Pending"
    main = [facts.of(one["name"]) for one in pod["spec"]["containers"]]
    if any(one.run is None and one.last is None for one in main):
        return "Pending"
    if any(one.running for one in main) or policy == "Always":
        return "Running"
    if all(one.ended is not None and one.ended.code == 0 for one in main):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _final(pod: Object, facts: PodFacts) -> str:
    """Succeeded if every main container has, by its last run."""
    main = [facts.of(one["name"]).ended for one in pod["spec"]["containers"]]
    return "Succeeded" if all(one is not None and one.code == 0 for one in main) else "Failed"


# -- conditions --------------------------------------------------------------------------------------------------------


def _conditions(pod: Object, facts: PodFacts, said: str, now: float) -> list[Object]:
    known = (pod.get("status") or {}).get("conditions") or ()
    before = {one["type"]: one for one in known}
    wanted = list(_wanted(pod, facts, said, before))
    named = {one["type"] for one in wanted}
    others = [dict(one) for one in known if one["type"] not in named]
    return [_dated(one, before.get(one["type"]), pod, now) for one in wanted] + others


def _wanted(pod: Object, facts: PodFacts, said: str, before: Mapping[str, Any]) -> Iterator[Object]:
    yield _condition("PodReadyToStartContainers", bool(facts.address) and not (facts.over and said in FINISHED))
    yield _initialized(pod, facts, said)
    inner = _containers_ready(pod, facts, said)
    yield {**_ready(pod, inner, before), "type": names.READY}
    yield {**inner, "type": "ContainersReady"}
    if "PodScheduled" not in before:
        yield _condition("PodScheduled", ok=True)
    else:
        scheduled = before["PodScheduled"]
        yield {
            name: value for name, value in scheduled.items() if name not in ("lastTransitionTime", "observedGeneration")
        }
    yield from (dict(one) for one in facts.conditions)


def _condition(kind: str, ok: bool, reason: str = "", message: str = "") -> Object:
    why = {"reason": reason} if reason else {}
    return {"type": kind, "status": "True" if ok else "False", **why, **({"message": message} if message else {})}


def _dated(condition: Object, before: Mapping[str, Any] | None, pod: Object, now: float) -> Object:
    """With what a condition always has; the API server shows a null time of the last probe."""
    since = before.get("lastTransitionTime") if before and before["status"] == condition["status"] else None
    seen = {"observedGeneration": pod["metadata"]["generation"]} if pod["metadata"].get("generation") else {}
    return {"lastProbeTime": None, **condition, "lastTransitionTime": since or timestamp(now), **seen}


def _initialized(pod: Object, facts: PodFacts, said: str) -> Object:
    if said == "Succeeded":
        return _condition("Initialized", ok=True, reason="PodCompleted")
    if initialized(pod, facts):
        return _condition("Initialized", ok=True)
    names_ = [one["name"] for one in init_containers(pod) if not _done(one, facts.of(one["name"]))]
    why = f"containers with incomplete status: [{' '.join(names_)}]"
    return _condition("Initialized", ok=False, reason="ContainersNotInitialized", message=why)


def _done(container: Object, known: ContainerFacts) -> bool:
    if is_sidecar(container):
        return known.started
    return known.ended is not None and known.ended.code == 0


def _containers_ready(pod: Object, facts: PodFacts, said: str) -> Object:
    """Sidecars count, other init containers do not."""
    if said == "Succeeded":
        return _condition("", ok=False, reason="PodCompleted")
    if said == "Failed":
        return _condition("", ok=False, reason="PodFailed")
    lasting = [one for one in init_containers(pod) if is_sidecar(one)] + pod["spec"]["containers"]
    unready = [one["name"] for one in lasting if not facts.of(one["name"]).ready]
    if not unready:
        return _condition("", ok=True)
    why = f"containers with unready status: [{' '.join(unready)}]"
    return _condition("", ok=False, reason="ContainersNotReady", message=why)


def _ready(pod: Object, inner: Object, before: Mapping[str, Any]) -> Object:
    """The readiness gates count, too."""
    if inner["status"] != "True":
        return inner
    faults = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        if kind not in before:
            faults.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif before[kind]["status"] != "True":
            said = before[kind]["status"]
            faults.append(f'the status of pod readiness gate "{kind}" is not "True", but {said}')
    if not faults:
        return inner
    return _condition("", ok=False, reason="ReadinessGatesNotReady", message=", ".join(faults))


# -- containers --------------------------------------------------------------------------------------------------------


def _container(pod: Object, container: Object, facts: PodFacts, *, init: bool) -> Object:
    known = facts.of(container["name"])
    state, last = _states(pod, known, facts, init=init)
    run = known.run or known.last
    ready = known.ready
    if init and not is_sidecar(container):
        ready = known.ended is not None and known.ended.code == 0
    return {
        "name": container["name"],
        "state": state,
        "lastState": last,
        "ready": ready,
        "restartCount": known.restarts,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": SCHEME + run.id if run and run.id else "",
        "started": known.running and known.started,
    }


def _states(pod: Object, known: ContainerFacts, facts: PodFacts, *, init: bool) -> tuple[Object, Object]:
    """``state`` and ``lastState``; a pod that is over waits for nothing."""
    last = _terminated(known.last) if known.last else {}
    if known.waiting and not facts.over:
        over = known.ended or known.last
        return _waits(known.waiting), _terminated(over) if over else {}
    if isinstance(known.run, Running):
        return {"running": {"startedAt": timestamp(known.run.started)}}, last
    if known.run:
        return _terminated(known.run), last
    default = "PodInitializing" if init_containers(pod) or init else "ContainerCreating"
    return _waits(Waiting(default)), last


def _waits(waiting: Waiting) -> Object:
    return {"waiting": {"reason": waiting.reason, **({"message": waiting.message} if waiting.message else {})}}


def _terminated(run: Ended) -> Object:
    said: Object = {"exitCode": run.code, "reason": run.reason}
    if run.message:
        said["message"] = run.message
    times = {"startedAt": timestamp(run.started), "finishedAt": timestamp(run.finished)}
    return {"terminated": {**said, **times, "containerID": SCHEME + run.id if run.id else ""}}
