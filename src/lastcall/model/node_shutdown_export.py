"""The record of a shutdown as a Kubernetes object: ``NodeShutdown`` of ``lastcall.dev/v1alpha1``."""

from datetime import UTC, datetime
from typing import Any

from lastcall.model.shutdown import ContainerRecord, PhaseRecord, PodRecord, ShutdownOutcome, ShutdownRecord
from lastcall.names import API_VERSION, NODE_SHUTDOWN


def to_node_shutdown(record: ShutdownRecord) -> dict[str, Any]:
    """The object as dicts, lists and scalars; unknown values are omitted.

    Times are RFC 3339 in UTC with microseconds, as ``metav1.MicroTime`` formats them; fields named ``Seconds`` are
    numbers. ``grantedSeconds`` is omitted if logind sets no limit, ``endTime`` while the shutdown is running.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_SHUTDOWN,
        "metadata": {"name": record.id},
        "spec": _without_unknown(
            nodeName=record.node,
            bootID=record.boot_id,
            how=record.how,
            announcedBy=list(record.announced_by),
            mode=record.mode.value,
            requestedSeconds=_round_seconds(record.requested),
            grantedSeconds=_round_seconds(record.granted),
            phases=[{"priority": phase.priority, "seconds": phase.seconds} for phase in record.phases],
        ),
        "status": _without_unknown(
            state=record.state.value,
            outcome=record.outcome.value,
            podsEnded=record.pod_counts,
            startTime=_format_time(record, 0.0),
            deadlineTime=_format_time(record, record.deadline),
            endTime=None if record.outcome is ShutdownOutcome.RUNNING else _format_time(record, record.ended),
            releasedTime=_format_time(record, record.released),
            returnedTime=_format_time(record, record.returned),
            lockHeld=record.lock,
            phases=[_phase_object(record, phase) for phase in record.phases],
            pods=[_pod_object(record, pod) for pod in record.pods],
            notes=[{"time": _format_time(record, note.at), "message": note.text} for note in record.notes],
        ),
    }


def _phase_object(record: ShutdownRecord, phase: PhaseRecord) -> dict[str, Any]:
    return _without_unknown(
        priority=phase.priority,
        grantedSeconds=_round_seconds(phase.given),
        startTime=_format_time(record, phase.started),
        endTime=_format_time(record, phase.ended),
        result=phase.end.value if phase.end else None,
    )


def _pod_object(record: ShutdownRecord, pod: PodRecord) -> dict[str, Any]:
    return _without_unknown(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        priority=pod.priority,
        phaseIndex=pod.phase,
        terminationGracePeriodSeconds=pod.asked,
        grantedSeconds=_round_seconds(pod.grace),
        startTime=_format_time(record, pod.started),
        endTime=_format_time(record, pod.ended),
        unmountedTime=_format_time(record, pod.unmounted),
        applicationReady=pod.application.is_ready if pod.application else None,
        applicationMessage=(pod.application.message or None) if pod.application else None,
        outcome=pod.outcome.value if pod.outcome else None,
        cutShort=pod.was_cut_short,
        containers=[_container_object(record, container) for container in pod.containers],
    )


def _container_object(record: ShutdownRecord, container: ContainerRecord) -> dict[str, Any]:
    hook = _without_unknown(
        startTime=_format_time(record, container.hook_started),
        endTime=_format_time(record, container.hook_ended),
        succeeded=container.hook_ok,
        message=container.hook_message or None,
    )
    return _without_unknown(
        name=container.name,
        preStop=hook or None,
        sigtermTime=_format_time(record, container.term),
        sigkillTime=_format_time(record, container.kill),
        endTime=_format_time(record, container.ended),
        exitCode=container.exit_code,
    )


def _without_unknown(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _round_seconds(seconds: float | None) -> float | None:
    return seconds if seconds is None or seconds != int(seconds) else int(seconds)


def _format_time(record: ShutdownRecord, offset: float | None) -> str | None:
    if offset is None:
        return None
    return datetime.fromtimestamp(record.wall + offset, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
