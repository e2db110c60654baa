"""A pod's status as a kubelet writes it (pure; ``kubelet_pods.go: generateAPIPodStatus``, ``status/generate.go``)."""

from collections.abc import Iterator, Mapping
from typing import Any

from lastcall import names
from lastcall.adapters.kube.resources import Object
from lastcall.model.pods import FINISHED
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.kubelet.state.container_facts import (
    SCHEME,
    ContainerFacts,
    PodFacts,
    RunningState,
    TerminatedState,
    WaitingState,
)
from lastcall_lab.kubelet.state.start_plan import init_containers, is_initialized, is_sidecar

_NOTHING: tuple[Any, ...] = (None, "", {}, [])


def pod_status(pod: Object, facts: PodFacts, now: float) -> Object:
    """The whole status; ``now`` in seconds since 1970.

    A condition keeps its last transition time while its status stays the same.
    """
    said = pod_phase(pod, facts)
    answer: Object = {
        "phase": said,
        "conditions": _pod_conditions(pod, facts, said, now),
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
        answer["initContainerStatuses"] = [_container_status(pod, one, facts, init=True) for one in init]
    answer["containerStatuses"] = [_container_status(pod, one, facts, init=False) for one in pod["spec"]["containers"]]
    return answer


def rejected_status(pod: Object, facts: PodFacts) -> Object:
    """The whole status of a pod that is not admitted (``kubelet.go: rejectPod``)."""
    before = (pod.get("status") or {}).get("conditions") or []
    said: Object = {"phase": "Failed", "reason": facts.reason, "message": facts.message, "conditions": before}
    if facts.started_at is not None:
        said["startTime"] = timestamp(facts.started_at)
    return said


def status_patch(new: Object, old: Mapping[str, Any], uid: str) -> Object | None:
    """A strategic merge patch of the status with the uid as its precondition; None if nothing changes."""
    changed = {name: value for name, value in new.items() if not _is_same_field(name, value, old.get(name))}
    gone = {name: None for name in ("reason", "message") if name in old and name not in new}
    if not changed and not gone:
        return None
    if "conditions" in changed:
        before = {one["type"]: one for one in old.get("conditions") or ()}
        changed["conditions"] = [_replace_condition(before.get(one["type"], {}), one) for one in new["conditions"]]
    for name in ("podIPs", "hostIPs"):
        if name in changed:
            changed[name] = changed[name] + [
                _delete_directive(one) for one in old.get(name) or () if one not in changed[name]
            ]
    return {"metadata": {"uid": uid}, "status": {**changed, **gone}}


def _delete_directive(address: Object) -> Object:
    """Removes merged list entries, such as addresses, that the new status does not have."""
    return {**address, "$patch": "delete"}


def _replace_condition(before: Mapping[str, Any], condition: Object) -> Object:
    """Strategic merge patches merge conditions, so a dropped field of one needs an explicit removal."""
    return {**{name: None for name in before if name not in condition}, **condition}


def _is_same_field(name: str, new: Any, old: Any) -> bool:
    """Whether two fields mean the same: empty equals absent, and conditions compare by type."""
    if name != "conditions":
        return _is_equivalent(new, old)
    return _is_equivalent({one["type"]: one for one in new or ()}, {one["type"]: one for one in old or ()})


def _is_equivalent(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_is_equivalent(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(map(_is_equivalent, one, other))
    return one in _NOTHING and other in _NOTHING


# -- phase -------------------------------------------------------------------------------------------------------------


def pod_phase(pod: Object, facts: PodFacts) -> str:
    """``kubelet_pods.go: getPhase``; a final phase never changes."""
    before = (pod.get("status") or {}).get("phase", "")
    if facts.phase or before in FINISHED:
        return facts.phase or before
    policy = pod["spec"].get("restartPolicy", "Always")
    if facts.over:
        return _final_phase(pod, facts)
    if facts.leaving and before:
        return str(before)
    if not is_initialized(pod, facts):
        return "Pending"
    main = [facts.facts_of(one["name"]) for one in pod["spec"]["containers"]]
    if any(one.run is None and one.last is None for one in main):
        return "Pending"
    if any(one.running for one in main) or policy == "Always":
        return "Running"
    if all(one.last_end is not None and one.last_end.code == 0 for one in main):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _final_phase(pod: Object, facts: PodFacts) -> str:
    """Succeeded if the last run of every main container succeeded."""
    main = [facts.facts_of(one["name"]).last_end for one in pod["spec"]["containers"]]
    return "Succeeded" if all(one is not None and one.code == 0 for one in main) else "Failed"


# -- conditions --------------------------------------------------------------------------------------------------------


def _pod_conditions(pod: Object, facts: PodFacts, said: str, now: float) -> list[Object]:
    known = (pod.get("status") or {}).get("conditions") or ()
    before = {one["type"]: one for one in known}
    wanted = list(_desired_conditions(pod, facts, said, before))
    named = {one["type"] for one in wanted}
    others = [dict(one) for one in known if one["type"] not in named]
    return [_with_times(one, before.get(one["type"]), pod, now) for one in wanted] + others


def _desired_conditions(pod: Object, facts: PodFacts, said: str, before: Mapping[str, Any]) -> Iterator[Object]:
    yield _new_condition("PodReadyToStartContainers", bool(facts.address) and not (facts.over and said in FINISHED))
    yield _initialized_condition(pod, facts, said)
    inner = _containers_ready_condition(pod, facts, said)
    yield {**_ready_condition(pod, inner, before), "type": names.READY}
    yield {**inner, "type": "ContainersReady"}
    if "PodScheduled" not in before:
        yield _new_condition("PodScheduled", ok=True)
    else:
        scheduled = before["PodScheduled"]
        yield {
            name: value for name, value in scheduled.items() if name not in ("lastTransitionTime", "observedGeneration")
        }
    yield from (dict(one) for one in facts.conditions)


def _new_condition(kind: str, ok: bool, reason: str = "", message: str = "") -> Object:
    why = {"reason": reason} if reason else {}
    return {"type": kind, "status": "True" if ok else "False", **why, **({"message": message} if message else {})}


def _with_times(condition: Object, before: Mapping[str, Any] | None, pod: Object, now: float) -> Object:
    """Adds the times of a condition; the API server shows a null ``lastProbeTime``."""
    since = before.get("lastTransitionTime") if before and before["status"] == condition["status"] else None
    seen = {"observedGeneration": pod["metadata"]["generation"]} if pod["metadata"].get("generation") else {}
    return {"lastProbeTime": None, **condition, "lastTransitionTime": since or timestamp(now), **seen}


def _initialized_condition(pod: Object, facts: PodFacts, said: str) -> Object:
    if said == "Succeeded":
        return _new_condition("Initialized", ok=True, reason="PodCompleted")
    if is_initialized(pod, facts):
        return _new_condition("Initialized", ok=True)
    names_ = [one["name"] for one in init_containers(pod) if not _is_container_done(one, facts.facts_of(one["name"]))]
    why = f"containers with incomplete status: [{' '.join(names_)}]"
    return _new_condition("Initialized", ok=False, reason="ContainersNotInitialized", message=why)


def _is_container_done(container: Object, known: ContainerFacts) -> bool:
    if is_sidecar(container):
        return known.started
    return known.last_end is not None and known.last_end.code == 0


def _containers_ready_condition(pod: Object, facts: PodFacts, said: str) -> Object:
    """Sidecars count; other init containers do not."""
    if said == "Succeeded":
        return _new_condition("", ok=False, reason="PodCompleted")
    if said == "Failed":
        return _new_condition("", ok=False, reason="PodFailed")
    if facts.withdrawn:
        return _new_condition("", ok=False, reason=names.TERMINATED_REASON, message=names.NOT_READY_MESSAGE)
    lasting = [one for one in init_containers(pod) if is_sidecar(one)] + pod["spec"]["containers"]
    unready = [one["name"] for one in lasting if not facts.facts_of(one["name"]).ready]
    if not unready:
        return _new_condition("", ok=True)
    why = f"containers with unready status: [{' '.join(unready)}]"
    return _new_condition("", ok=False, reason="ContainersNotReady", message=why)


def _ready_condition(pod: Object, inner: Object, before: Mapping[str, Any]) -> Object:
    """Includes the readiness gates."""
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
    return _new_condition("", ok=False, reason="ReadinessGatesNotReady", message=", ".join(faults))


# -- containers --------------------------------------------------------------------------------------------------------


def _container_status(pod: Object, container: Object, facts: PodFacts, *, init: bool) -> Object:
    known = facts.facts_of(container["name"])
    state, last = _container_states(pod, known, facts, init=init)
    run = known.run or known.last
    ready = known.ready
    if init and not is_sidecar(container):
        ready = known.last_end is not None and known.last_end.code == 0
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


def _container_states(pod: Object, known: ContainerFacts, facts: PodFacts, *, init: bool) -> tuple[Object, Object]:
    """``state`` and ``lastState``; the containers of a finished pod are never waiting."""
    last = _terminated_status(known.last) if known.last else {}
    if known.waiting and not facts.over:
        over = known.last_end or known.last
        return _waiting_state(known.waiting), _terminated_status(over) if over else {}
    if isinstance(known.run, RunningState):
        return {"running": {"startedAt": timestamp(known.run.started)}}, last
    if known.run:
        return _terminated_status(known.run), last
    default = "PodInitializing" if init_containers(pod) or init else "ContainerCreating"
    return _waiting_state(WaitingState(default)), last


def _waiting_state(waiting: WaitingState) -> Object:
    return {"waiting": {"reason": waiting.reason, **({"message": waiting.message} if waiting.message else {})}}


def _terminated_status(run: TerminatedState) -> Object:
    said: Object = {"exitCode": run.code, "reason": run.reason}
    if run.message:
        said["message"] = run.message
    times = {"startedAt": timestamp(run.started), "finishedAt": timestamp(run.finished)}
    return {"terminated": {**said, **times, "containerID": SCHEME + run.id if run.id else ""}}
