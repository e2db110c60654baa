"""CrashLoopBackOff: how long a container that ends again and again is left alone (pure).

``k8s.io/client-go/util/flowcontrol/backoff.go`` as ``pkg/kubelet/kuberuntime`` uses it: the first restart comes at
once, each later one after twice the pause of the one before, counted from the end of the last run.
"""

from typing import NamedTuple

from lastcall_lab.kubelet.base.settings import KubeletSettings


class RestartPause(NamedTuple):
    """A pause of so many ``seconds``, decided at ``since`` (seconds since 1970)."""

    seconds: float
    since: float


def seconds_left(pause: RestartPause | None, finished: float, now: float, settings: KubeletSettings) -> float:
    """Seconds until a container whose run was over at ``finished`` may be started again."""
    if pause is None or finished - pause.since > settings.backoff_forgotten:
        return 0.0
    return max(0.0, finished + pause.seconds - now)


def next_pause(pause: RestartPause | None, finished: float, now: float, settings: KubeletSettings) -> RestartPause:
    """The pause before the restart after the one that is made now."""
    if pause is None or finished - pause.since > settings.backoff_forgotten:
        return RestartPause(settings.backoff_first, now)
    return RestartPause(min(2 * pause.seconds, settings.backoff_longest), now)
