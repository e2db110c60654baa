"""The times inside one pod's termination (pure): how long its hooks may run, and when SIGKILL is sent.

The kubelet's rules (pkg/kubelet/kuberuntime/kuberuntime_container.go: killContainer): preStop runs within the grace
period, SIGTERM follows when it ends or when the grace period is over, and at least two seconds lie between SIGTERM and
SIGKILL. One rule is ours: nothing reaches beyond the pod's phase. If the two seconds would end after the phase, SIGTERM
is sent that much earlier, because a SIGTERM immediately before SIGKILL would be useless.
"""

from lastcall.model.base import Facts

MINIMUM = 2.0
"""Seconds that a container has between SIGTERM and SIGKILL (the kubelet's minimumGracePeriodInSeconds)."""


_SIGKILL = 128 + 9
"""The exit code of a container that SIGKILL ended."""


class TerminationWindow(Facts, frozen=True):
    """A pod's time: it begins at ``started``, has ``grace`` seconds, and gets SIGKILL at ``last_kill`` at the latest.

    ``started`` and ``last_kill`` are CLOCK_BOOTTIME seconds. ``last_kill`` precedes the end of the phase by the time
    that the runtime needs to confirm the kill.
    """

    started: float
    grace: float
    last_kill: float

    @property
    def sigterm_deadline(self) -> float:
        """The latest SIGTERM: until then hooks may run, and sidecars wait for the containers before them.

        It leaves MINIMUM before ``last_kill``, but at most half of the time from ``started`` to ``last_kill``.
        """
        half = self.started + (self.last_kill - self.started) / 2
        return min(self.started + self.grace, max(half, self.last_kill - MINIMUM))

    @property
    def traffic_deadline(self) -> float:
        """Until when SIGTERM may wait for the pod's Services to stop sending it traffic: a quarter of its time."""
        return min(self.started + (self.last_kill - self.started) / 4, self.sigterm_deadline)

    def preparation_deadline(self, asked: float | None) -> float:
        """Until when a guarded pod's termination may wait for its application to prepare.

        The pod keeps the ``asked`` seconds (None: as many as it gets), but at most half of its time for itself.
        """
        half = (self.last_kill - self.started) / 2
        return self.last_kill - (half if asked is None else min(asked, half))

    def service_deadline(self, asked: float | None) -> float:
        """Until when the termination of a pod that others need may wait for these.

        The pod keeps the ``asked`` seconds (None: as many as it gets), and MINIMUM at least, but at most half of its time.
        """
        return self.preparation_deadline(None if asked is None else max(asked, MINIMUM))

    def begin_at(self, now: float, asked: float | None) -> "TerminationWindow":
        """The window of a pod whose termination begins at ``now`` instead, with what is left of its time."""
        left = max(0.0, self.last_kill - now)
        return TerminationWindow(
            started=now, grace=left if asked is None else min(asked, left), last_kill=self.last_kill
        )

    def kill_time(self, term: float) -> float:
        """When a container that got SIGTERM at ``term`` gets SIGKILL; never before ``term``.

        SIGTERM is sent within the grace period, so no pod runs longer than its grace period plus two seconds.
        """
        return max(term, min(max(self.started + self.grace, term + MINIMUM), self.last_kill))


def was_killed(exit_code: int | None) -> bool:
    """Whether SIGKILL ended a container to which SIGKILL was sent.

    A container that had already ended has another exit code: a slow runtime may report its end only after the kill.
    None, an unknown exit code, counts as killed.
    """
    return exit_code in (None, _SIGKILL)


class PhaseTime(Facts, frozen=True):
    """A phase's time in CLOCK_BOOTTIME seconds: over at ``end``; SIGKILL is sent at ``last_kill`` at the latest.

    ``kill_seconds`` is how long the runtime needs to confirm the phase's kills.
    """

    started: float
    seconds: float
    end: float
    last_kill: float
    kill_seconds: float

    def pod_window(self, started: float, asked: float | None) -> TerminationWindow:
        """The time of a pod that begins at ``started`` and asks for ``asked`` seconds (None: the rest of the phase)."""
        left = max(0.0, self.started + self.seconds - started)
        return TerminationWindow(
            started=started, grace=left if asked is None else min(asked, left), last_kill=self.last_kill
        )


def phase_time(started: float, seconds: float, kill_seconds: float, deadline: float) -> PhaseTime:
    """The time of a phase of ``seconds``; ``deadline`` is the latest time at which the lock is released."""
    end = phase_end(started, seconds, kill_seconds, deadline)
    last = last_kill_time(started, end, kill_seconds)
    return PhaseTime(started=started, seconds=seconds, end=end, last_kill=last, kill_seconds=kill_seconds)


def phase_end(started: float, seconds: float, kill_seconds: float, deadline: float) -> float:
    """The latest end of a phase; a phase of zero seconds still waits for its kills, if the deadline allows."""
    return min(started + max(seconds, kill_seconds), max(deadline, started))


def last_kill_time(started: float, end: float, kill_seconds: float) -> float:
    """When SIGKILL is sent so that it is confirmed by ``end``; takes at most half of a short phase."""
    return max(started, end - min(kill_seconds, (end - started) / 2))
