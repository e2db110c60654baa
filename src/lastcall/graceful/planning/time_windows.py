"""The times inside one pod's end (pure): until when its hooks may run, when SIGKILL goes out.

The kubelet's rules (pkg/kubelet/kuberuntime/kuberuntime_container.go: killContainer): preStop runs within the grace
period, SIGTERM follows when it ends or when the grace is over, and at least two seconds lie between SIGTERM and
SIGKILL. One rule is ours: nothing reaches beyond the pod's phase. So where the two seconds would lie beyond it, SIGTERM
comes that much earlier: a container that is killed in the moment of its SIGTERM might as well have got none.
"""

from lastcall.model.base import Facts

MINIMUM = 2.0
"""Seconds that a container has between SIGTERM and SIGKILL (the kubelet's minimumGracePeriodInSeconds)."""


_SIGKILL = 128 + 9
"""The exit code of a container that SIGKILL has ended."""


class TerminationWindow(Facts, frozen=True):
    """A pod's time: it began at ``started``, has ``grace`` seconds, and SIGKILL goes out at ``last_kill_time`` at the latest.

    ``started`` and ``last_kill_time`` are CLOCK_BOOTTIME seconds. ``last_kill_time`` lies so long before the end of the phase
    that the kill can be confirmed within it.
    """

    started: float
    grace: float
    last_kill: float

    @property
    def sigterm_deadline(self) -> float:
        """Until when hooks may run and sidecars wait for their turn; then comes SIGTERM.

        It leaves MINIMUM before ``last_kill_time``, but takes no more than half of what there is up to it for that.
        """
        half = self.started + (self.last_kill - self.started) / 2
        return min(self.started + self.grace, max(half, self.last_kill - MINIMUM))

    def kill_time(self, term: float) -> float:
        """When SIGKILL goes out to a container that got SIGTERM at ``term``; never before ``term``.

        So no pod has more than its grace and two seconds, as SIGTERM comes within the grace.
        """
        return max(term, min(max(self.started + self.grace, term + MINIMUM), self.last_kill))


def was_killed(exit_code: int | None) -> bool:
    """Whether it was SIGKILL that ended a container to which SIGKILL went out.

    One that had ended already, which a runtime that does not answer tells too late, has another exit code. None, for one
    that is not known, counts as killed.
    """
    return exit_code in (None, _SIGKILL)


class PhaseTime(Facts, frozen=True):
    """A phase's time, in CLOCK_BOOTTIME: over at ``end``, SIGKILL goes out at ``last_kill_time`` at the latest.

    ``kill_seconds`` is how long its kills take to be confirmed.
    """

    started: float
    seconds: float
    end: float
    last_kill: float
    kill_seconds: float

    def pod_window(self, started: float, asked: float | None) -> TerminationWindow:
        """The time of one of its pods that began at ``started`` and asks for so many seconds; None for all there are."""
        left = max(0.0, self.started + self.seconds - started)
        return TerminationWindow(
            started=started, grace=left if asked is None else min(asked, left), last_kill=self.last_kill
        )


def phase_time(started: float, seconds: float, kill_seconds: float, deadline: float) -> PhaseTime:
    """The time of a phase of so many seconds; ``deadline`` is when the lock is released at the latest."""
    end = phase_end(started, seconds, kill_seconds, deadline)
    last = last_kill_time(started, end, kill_seconds)
    return PhaseTime(started=started, seconds=seconds, end=end, last_kill=last, kill_seconds=kill_seconds)


def phase_end(started: float, seconds: float, kill_seconds: float, deadline: float) -> float:
    """When a phase is over at the latest; a phase of no seconds still waits for its kills to work, if it may."""
    return min(started + max(seconds, kill_seconds), max(deadline, started))


def last_kill_time(started: float, end: float, kill_seconds: float) -> float:
    """When SIGKILL goes out, so that it is confirmed by ``end``; at most half of a short phase is given up for that."""
    return max(started, end - min(kill_seconds, (end - started) / 2))
