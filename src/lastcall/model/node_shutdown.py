"""The record of a shutdown as a Kubernetes object: ``NodeShutdown`` of ``lastcall.dev/v1alpha1``."""

from datetime import UTC, datetime
from typing import Any

from lastcall.model.shutdown import ContainerRecord, Outcome, PhaseRecord, PodRecord, Shutdown
from lastcall.names import API_VERSION, NODE_SHUTDOWN


def to_node_shutdown(record: Shutdown) -> dict[str, Any]:
    """The object, of nothing but dicts, lists and scalars; what is not known is left out.

    Times are RFC 3339 in UTC with microseconds, as ``metav1.MicroTime`` writes them; what is called ``Seconds`` is a
    number. ``grantedSeconds`` is left out if logind sets no limit, ``endTime`` while the shutdown still runs.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_SHUTDOWN,
        "metadata": {"name": record.id},
        "spec": _known(
            nodeName=record.node,
            bootID=record.boot_id,
            how=record.how,
            mode=record.mode.value,
            requestedSeconds=_number(record.requested),
            grantedSeconds=_number(record.granted),
            phases=[{"priority": phase.priority, "seconds": phase.seconds} for phase in record.phases],
        ),
        "status": _known(
            outcome=record.outcome.value,
            startTime=_time(record, 0.0),
            deadlineTime=_time(record, record.deadline),
            endTime=None if record.outcome is Outcome.RUNNING else _time(record, record.ended),
            releasedTime=_time(record, record.released),
            lockHeld=record.lock,
            phases=[_phase(record, phase) for phase in record.phases],
            pods=[_pod(record, pod) for pod in record.pods],
            notes=[{"time": _time(record, note.at), "message": note.text} for note in record.notes],
        ),
    }


def _phase(record: Shutdown, phase: PhaseRecord) -> dict[str, Any]:
    return _known(
        priority=phase.priority,
        grantedSeconds=_number(phase.given),
        startTime=_time(record, phase.started),
        endTime=_time(record, phase.ended),
        result=phase.end.value if phase.end else None,
    )


def _pod(record: Shutdown, pod: PodRecord) -> dict[str, Any]:
    return _known(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        priority=pod.priority,
        phaseIndex=pod.phase,
        terminationGracePeriodSeconds=pod.asked,
        grantedSeconds=_number(pod.grace),
        startTime=_time(record, pod.started),
        endTime=_time(record, pod.ended),
        unmountedTime=_time(record, pod.unmounted),
        outcome=pod.outcome.value if pod.outcome else None,
        cutShort=pod.cut_short,
        containers=[_container(record, container) for container in pod.containers],
    )


def _container(record: Shutdown, container: ContainerRecord) -> dict[str, Any]:
    hook = _known(
        startTime=_time(record, container.hook_started),
        endTime=_time(record, container.hook_ended),
        succeeded=container.hook_ok,
        message=container.hook_message or None,
    )
    return _known(
        name=container.name,
        preStop=hook or None,
        sigtermTime=_time(record, container.term),
        sigkillTime=_time(record, container.kill),
        endTime=_time(record, container.ended),
        exitCode=container.exit_code,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _number(seconds: float | None) -> float | None:
    return seconds if seconds is None or seconds != int(seconds) else int(seconds)


def _time(record: Shutdown, offset: float | None) -> str | None:
    if offset is None:
        return None
    return datetime.fromtimestamp(record.wall + offset, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
