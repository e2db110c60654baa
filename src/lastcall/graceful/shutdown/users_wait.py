"""Lets the termination of a network plugin, or of DNS, wait for the pods of its phase that need it."""

from collections.abc import Callable

from lastcall.aio import Signal, wait_first
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.graceful.shutdown.roster import Roster
from lastcall.model.pods import asked_grace
from lastcall.model.shutdown import NoteWritten
from lastcall.ports.node import Clock, RunningPod

_NAMED = 3
"""Users that a note names."""


async def wait_for_users(
    live: RunningPod,
    time: AdjustableWindow,
    *,
    roster: Roster,
    left: Signal,
    clock: Clock,
    tell: Tell,
    called_off: Callable[[], bool],
) -> bool:
    """Waits before anything is done to the pod, and moves its window to the present; False at once if no pod needs it.

    The pod keeps its grace period, or half of its phase: a user that takes longer is noted. ``left`` is set when a pod
    has ended, and when ``called_off`` returns True, which ends the wait too.
    """
    uid, asked = live.pod.metadata.uid, asked_grace(live.pod)
    if not roster.users(uid):
        return False
    roster.mark_held(uid, held=True)
    try:
        while (users := roster.users(uid)) and not called_off():
            if time.window.service_deadline(asked) <= clock.boottime():
                tell(NoteWritten(at=clock.boottime(), text=_late_text(live, users)))
                break
            await wait_first(left.next(), time.wait_until(lambda window: window.service_deadline(asked)))
    finally:
        roster.mark_held(uid, held=False)
    time.shorten(time.window.begin_at(clock.boottime(), asked))
    return True


def _late_text(live: RunningPod, users: list[str]) -> str:
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    return f"{live.pod.key} ends beside pods that need it: {', '.join(users[:_NAMED])}{more}"
