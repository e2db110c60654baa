"""CrashLoopBackOff: the wait before a container that keeps ending is restarted (pure).

Follows ``k8s.io/client-go/util/flowcontrol/backoff.go`` as used in ``pkg/kubelet/kuberuntime``: the first restart comes
at once, and each later one after twice the pause before, counted from the end of the last run.
"""

from typing import NamedTuple

from lastcall_lab.kubelet.base.settings import KubeletSettings


class RestartPause(NamedTuple):
    """A pause of ``seconds``, decided at ``since`` (seconds since 1970)."""

    seconds: float
    since: float


def seconds_left(pause: RestartPause | None, finished: float, now: float, settings: KubeletSettings) -> float:
    """Seconds until a container whose run ended at ``finished`` may be restarted."""
    if pause is None or finished - pause.since > settings.backoff_forgotten:
        return 0.0
    return max(0.0, finished + pause.seconds - now)


def next_pause(pause: RestartPause | None, finished: float, now: float, settings: KubeletSettings) -> RestartPause:
    """The pause that follows the restart made now."""
    if pause is None or finished - pause.since > settings.backoff_forgotten:
        return RestartPause(settings.backoff_first, now)
    return RestartPause(min(2 * pause.seconds, settings.backoff_longest), now)
