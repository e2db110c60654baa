"""Lets the termination of a guarded pod wait for its application."""

from collections.abc import Callable

from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.model.pods import asked_grace
from lastcall.model.shutdown import ApplicationWaited
from lastcall.ports.node import ApplicationReadiness, Clock, NodeFace, RunningPod


async def wait_for_application(
    live: RunningPod, time: AdjustableWindow, *, node: NodeFace, clock: Clock, called_off: Callable[[], bool]
) -> ApplicationWaited | None:
    """Waits before anything is done to the pod, and moves its window to the present; None at once if it is not guarded.

    The deadline wins: a pod whose application is not ready in time is terminated all the same, and the event says so.
    Ends the wait if ``called_off`` returns True. A failure is recorded, and the pod is terminated without further wait.
    """
    asked = asked_grace(live.pod)
    began = time.window.started
    try:
        readiness = await node.wait_until_prepared(
            live, lambda: 0.0 if called_off() else time.window.preparation_deadline(asked)
        )
    except Exception as error:  # whatever fails must not keep the pod from its end
        readiness = ApplicationReadiness(is_ready=False, message=f"{type(error).__name__}: {error}")
    if readiness is None:
        return None
    now = clock.boottime()
    time.shorten(time.window.begin_at(now, asked))
    return ApplicationWaited(
        at=now,
        uid=live.pod.metadata.uid,
        seconds=round(now - began, 3),
        is_ready=readiness.is_ready,
        message=readiness.message,
    )
