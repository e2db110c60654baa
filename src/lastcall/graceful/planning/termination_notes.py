"""Notes for people on a pod's termination, before it happens: short sentences.

The times follow ``time_windows``, with the whole phase as the limit: how long the runtime takes to confirm a kill
is not known in advance.
"""

from collections.abc import Iterator

from lastcall.graceful.planning.time_windows import MINIMUM, TerminationWindow
from lastcall.model.pods import (
    SYSTEM_CLASSES,
    Container,
    LifecycleHandler,
    Pod,
    asked_grace,
    list_sidecars,
    pod_priority,
)


def notes_for_pod(pod: Pod, seconds: int, *, phase: int) -> list[str]:
    """Notes on a pod that gets ``seconds`` in a phase of ``phase`` seconds."""
    return [
        *_time_notes(pod, seconds),
        *_hook_notes(pod, seconds, phase),
        *_minimum_notes(pod, seconds, phase),
        *_priority_notes(pod),
        *_deletion_notes(pod),
    ]


def sigterm_seconds(pod: Pod, seconds: int, *, phase: int) -> float | None:
    """Seconds between SIGTERM and SIGKILL for the container with the longest preStop hook; None if unknown.

    Hooks run within the grace period, and SIGTERM follows when they end (Kubernetes: Container Lifecycle Hooks). The
    duration of an exec or httpGet hook is not known before it has run.
    """
    lengths = [_hook_seconds(hook) for _, hook in _pre_stop_hooks(pod)]
    longest = max((length for length in lengths if length is not None), default=0)
    if None in lengths and longest < _phase_window(seconds, phase).sigterm_deadline:
        return None
    return _seconds_after_hook(longest, seconds, phase)


def _phase_window(seconds: int, phase: int) -> TerminationWindow:
    return TerminationWindow(started=0, grace=seconds, last_kill=phase)


def _seconds_after_hook(length: int, seconds: int, phase: int) -> float:
    """Seconds between SIGTERM and SIGKILL after a hook of ``length`` seconds."""
    window = _phase_window(seconds, phase)
    term = min(length, window.sigterm_deadline)
    return window.kill_time(term) - term


def _time_notes(pod: Pod, seconds: int) -> Iterator[str]:
    asked = asked_grace(pod)
    if asked is None and not seconds:
        yield "gets no time at all"
    elif asked and not seconds:
        yield f"gets none of the {asked} s it asks for"
    elif asked and seconds < asked:
        yield f"cut short: asks for {asked} s, gets {seconds} s"


def _hook_notes(pod: Pod, seconds: int, phase: int) -> Iterator[str]:
    until = _phase_window(seconds, phase).sigterm_deadline
    for container, hook in _pre_stop_hooks(pod):
        length = _hook_seconds(hook)
        if not seconds:
            yield f"preStop of {container.name} has no time to run in"
        elif length is None:
            kind = "exec" if hook.exec else "httpGet"
            yield f"preStop of {container.name} ({kind}) takes an unknown part of the {seconds} s from SIGTERM"
        elif length:
            cut = f"cut off after {until:g} s, " if length > until else ""
            left = _seconds_after_hook(length, seconds, phase)
            yield f"preStop of {container.name} sleeps {length} s: {cut}{left:g} s are left for SIGTERM"


def _minimum_notes(pod: Pod, seconds: int, phase: int) -> Iterator[str]:
    """Says where a pod may run longer than its grace period; silent if the duration of a hook is unknown."""
    lengths = [_hook_seconds(hook) for _, hook in _pre_stop_hooks(pod)]
    window = _phase_window(seconds, phase)
    end = window.kill_time(min(max((length or 0 for length in lengths), default=0), window.sigterm_deadline))
    if end > seconds and None not in lengths:
        yield f"may run for {end:g} s: SIGKILL comes {MINIMUM:g} s after SIGTERM at the earliest"


def _priority_notes(pod: Pod) -> Iterator[str]:
    name = pod.spec.priority_class_name
    if pod.spec.priority is not None or not name:
        return
    if name in SYSTEM_CLASSES:
        yield f"priority {pod_priority(pod)} by the class name {name} alone; the kubelet would count it as 0"
    else:
        yield f"priority class {name} without a number: counted as 0"


def _deletion_notes(pod: Pod) -> Iterator[str]:
    if pod.metadata.deletion_timestamp:
        asked, own = pod.metadata.deletion_grace_period_seconds, pod.spec.termination_grace_period_seconds
        shorter = asked is not None and own is not None and asked < own
        yield f"already being deleted, within {asked} s" if shorter else "already being deleted"


def _pre_stop_hooks(pod: Pod) -> Iterator[tuple[Container, LifecycleHandler]]:
    """The preStop hooks of the containers that run when the shutdown begins: main containers and sidecars."""
    for container in (*pod.spec.containers, *list_sidecars(pod)):
        hook = container.pre_stop
        if hook:
            yield container, hook


def _hook_seconds(hook: LifecycleHandler) -> int | None:
    return hook.sleep.seconds if hook.sleep else None
