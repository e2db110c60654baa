"""An application whose members a guard prepares: it knows by itself which of them have nothing to lose."""

from collections.abc import Callable

from lastcall.errors import Unavailable
from lastcall.model.pods import Pod
from lastcall.ports.guard import GuardedMember, MemberHealth, PreparationProgress, PreparationReport
from lastcall.ports.node import Clock

_VERIFIED_SECONDS = 11.5
"""What the guard has verified counts for ten seconds, and its answer takes one."""

_NEVER = -100.0


class GuardedApplication:
    """``ports.guard.GuardProvider``, and what it prepares. A member that goes while it has work of its own loses it.

    ``wanted`` is how many members it has if all is well. The attributes are its faults; times are boottime, in seconds.
    """

    is_reversible = True

    def __init__(self, clock: Clock, wanted: Callable[[], int]) -> None:
        self._clock, self._wanted = clock, wanted
        self.moves: dict[str, float] = {}
        """When the work of each member, by uid, began to move; after ``seconds`` it is gone."""
        self.seconds = 5.0
        self.delay = 0.05
        """Seconds of each answer."""
        self.is_silent = self.is_short = self.is_lying = False
        self._is_frozen = False
        self._lied_at = _NEVER
        self.calls: list[tuple[float, str, str]] = []
        """When what was called, and for whom."""
        self._safe_at: dict[str, float] = {}

    async def _answer(self, call: str, member: GuardedMember) -> None:
        self.calls.append((self._clock.boottime(), call, member.pod.metadata.uid))
        await self._clock.sleep(self.delay)
        if self.is_silent:
            raise Unavailable("no answer")

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """``GuardProvider.check_health``: by what the API server says of its members."""
        await self._answer("health", member)
        ready, wanted = sum(_is_ready(one) for one in (member.pod, *member.others)), self._wanted()
        if self.is_short or ready < wanted:
            return MemberHealth(is_healthy=False, message=f"{ready} of {wanted} members")
        return MemberHealth(is_healthy=True)

    async def prepare(self, member: GuardedMember) -> None:
        """``GuardProvider.prepare``."""
        await self._answer("prepare", member)
        self.moves.setdefault(member.pod.metadata.uid, self._clock.boottime())

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """``GuardProvider.check_progress``."""
        await self._answer("progress", member)
        if self.is_lying:
            self._lied_at = self._clock.boottime()
            return PreparationReport(progress=PreparationProgress.READY)
        began = self.moves.get(member.pod.metadata.uid)
        if began is None:
            return PreparationReport(progress=PreparationProgress.LOST, message="not prepared")
        if self.is_frozen:
            return PreparationReport(progress=PreparationProgress.STALLED, message="a replica does not follow")
        done = (self._clock.boottime() - began) / self.seconds
        if done < 1:
            return PreparationReport(progress=PreparationProgress.PREPARING, percent=int(100 * done))
        return PreparationReport(progress=PreparationProgress.READY)

    async def cancel(self, member: GuardedMember) -> None:
        """``GuardProvider.cancel``."""
        await self._answer("cancel", member)
        self.lose_preparations(member.pod.metadata.uid)

    async def release(self, member: GuardedMember) -> None:
        """``GuardProvider.release``."""
        await self._answer("release", member)
        self.lose_preparations(member.pod.metadata.uid)

    @property
    def is_frozen(self) -> bool:
        """Whether nothing moves, and nothing that has moved is safe."""
        return self._is_frozen

    @is_frozen.setter
    def is_frozen(self, value: bool) -> None:
        self._note_safe()
        self._is_frozen = value

    def lose_preparations(self, *uids: str) -> None:
        """Those of these members, or all, do not stand any more."""
        self._note_safe()
        for uid in uids or list(self.moves):
            self.moves.pop(uid, None)

    def _note_safe(self) -> None:
        """Before something changes: who has nothing to lose until now."""
        now = self._clock.boottime()
        self._safe_at.update({uid: now for uid in self.moves if self._has_moved(uid)})

    def was_safe(self, uid: str) -> bool:
        """The ground truth: whether it had nothing to lose when it may last have been verified.

        Whom an application has lied to is not to blame.
        """
        known = max(self._safe_at.get(uid, _NEVER), self._lied_at)
        return self._has_moved(uid) or self._clock.boottime() - known <= _VERIFIED_SECONDS

    def _has_moved(self, uid: str) -> bool:
        began = self.moves.get(uid)
        return began is not None and not self.is_frozen and self._clock.boottime() - began >= self.seconds


def _is_ready(pod: Pod) -> bool:
    conditions = pod.status.conditions or ()
    return pod.metadata.deletion_timestamp is None and any(
        one.type == "Ready" and one.status == "True" for one in conditions
    )
