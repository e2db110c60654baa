"""The provider ``exec``: commands in the application's containers; ``docs/how-to/guard-providers.md``."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta

from lastcall.adapters.guard.application_answers import (
    AnswerState,
    ApplicationAnswer,
    progress_report,
    read_answer,
    shorten_message,
)
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.settings import ProviderSettings
from lastcall.aio import timeout
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.budgets import is_ready
from lastcall.model.pods import Pod
from lastcall.ports.guard import (
    ExecResult,
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.exec"
DONE: Final = 0
IN_PROGRESS: Final = 75
"""EX_TEMPFAIL of sysexits.h."""
STALLED: Final = 69
"""EX_UNAVAILABLE."""

Words = Annotated[tuple[Annotated[str, Meta(max_length=4096)], ...], Meta(max_length=64)]
"""A program and its arguments; no shell. ``$(POD_NAME)``, ``$(POD_UID)`` and ``$(POD_NAMESPACE)`` are the member's."""


class ExecSettings(ProviderSettings, frozen=True):
    """``spec.provider.exec``."""

    prepare: Words
    progress: Words
    cancel: Words = ()
    release: Words = ()
    health: Words = ()
    """Without it an application is healthy if all its pods are Ready."""
    container: Annotated[str, Meta(max_length=63, pattern=r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = ""
    """The first one if it is not given."""
    reversible: bool = False
    timeout_seconds: Annotated[int, Meta(ge=1, le=25)] = 10

    def list_violations(self) -> Iterator[str]:
        """Commands that are missing."""
        for field in ("prepare", "progress"):
            if not getattr(self, field):
                yield f"{field}: []: must be a program and its arguments"
        if self.reversible and not self.cancel:
            yield "reversible: true: needs cancel, which undoes a preparation"


class ExecProviderFactory(ProviderFactory[ExecSettings]):
    """Makes providers ``exec``."""

    def __init__(self) -> None:
        super().__init__(ExecSettings, AT, ExecProvider)


class ExecProvider:
    """``ports.guard.GuardProvider``: each question is a command, and its exit code is the answer.

    A command whose time is over runs on in its container, and may run twice at the same time.
    """

    def __init__(self, settings: ExecSettings, access: NamespaceAccess) -> None:
        self._settings = settings
        self._access = access

    @property
    def is_reversible(self) -> bool:
        """As the settings say."""
        return self._settings.reversible

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """By ``health``: exit code 0 is healthy, unless its output says otherwise; any other one is not."""
        if not self._settings.health:
            return _judge_readiness(member)
        result = await self._run(member, "health", self._settings.health)
        if result.code in (126, 127):
            raise _failure("health", result)
        answer = _read_output("health", result) if result.code == DONE else ApplicationAnswer()
        is_healthy = result.code == DONE and answer.healthy is not False
        message = answer.message or ("" if is_healthy else _describe(result))
        return MemberHealth(is_healthy=is_healthy, message=shorten_message(message))

    async def prepare(self, member: GuardedMember) -> None:
        """By ``prepare``: done or begun."""
        result = await self._run(member, "prepare", self._settings.prepare)
        if result.code not in (DONE, IN_PROGRESS):
            raise _failure("prepare", result)

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """By ``progress``: 0 is ready, 75 in progress, 69 stalled. With 0 a ``state`` in its output counts instead."""
        result = await self._run(member, "progress", self._settings.progress)
        if result.code not in (DONE, IN_PROGRESS, STALLED):
            raise _failure("progress", result)
        answer = _read_output("progress", result)
        progress = _judge_progress(result.code, answer.state)
        report = progress_report(answer, progress)
        if report.message or progress is PreparationProgress.READY:
            return report
        return PreparationReport(
            progress=progress, percent=report.percent, eta_seconds=report.eta_seconds, message=_first_line(result)
        )

    async def cancel(self, member: GuardedMember) -> None:
        """By ``cancel``, if there is one."""
        await self._finish(member, "cancel", self._settings.cancel)

    async def release(self, member: GuardedMember) -> None:
        """By ``release`` in another pod, if there is one: the member is gone."""
        await self._finish(member, "release", self._settings.release)

    async def _finish(self, member: GuardedMember, verb: str, command: Sequence[str]) -> None:
        if not command:
            return
        result = await self._run(member, verb, command)
        if result.code == IN_PROGRESS:
            raise Unavailable(f"{verb} has not ended yet: {_describe(result)}")
        if result.code != DONE:
            raise _failure(verb, result)

    async def _run(self, member: GuardedMember, verb: str, command: Sequence[str]) -> ExecResult:
        pod, seconds = _choose_pod(member), self._settings.timeout_seconds
        words = tuple(_fill_in(word, member.pod) for word in command)
        try:
            async with timeout(seconds):
                return await self._access.execute(pod, self._settings.container, words)
        except TimeoutError:
            raise TimedOut(f"pod {pod.key}: {verb} has not ended in {seconds} s") from None


def _choose_pod(member: GuardedMember) -> Pod:
    """The member itself; if it is gone, another pod of the application, a ready one if possible."""
    if member.pod.spec.node_name:
        return member.pod
    running = [pod for pod in member.others if pod.status.phase == "Running"]
    if not running:
        raise Unavailable("no pod of the application runs")
    return next((pod for pod in running if is_ready(pod)), running[0])


def _fill_in(word: str, pod: Pod) -> str:
    """As Kubernetes replaces ``$(NAME)`` in ``command``; other texts of this form stay as they are."""
    metadata = pod.metadata
    for name, value in (("NAME", metadata.name), ("UID", metadata.uid), ("NAMESPACE", metadata.namespace)):
        word = word.replace(f"$(POD_{name})", value)
    return word


def _judge_progress(code: int, state: AnswerState | None) -> PreparationProgress:
    """The exit code decides; only "ready" may be taken back."""
    if code == IN_PROGRESS:
        return PreparationProgress.PREPARING
    if code == STALLED:
        return PreparationProgress.STALLED
    return PreparationProgress(state.value) if state else PreparationProgress.READY


def _judge_readiness(member: GuardedMember) -> MemberHealth:
    own = [member.pod] if member.pod.spec.node_name else []
    missing = [pod.metadata.name for pod in (*own, *member.others) if not is_ready(pod)]
    return MemberHealth(is_healthy=not missing, message=f"not ready: {', '.join(missing)}" if missing else "")


def _read_output(verb: str, result: ExecResult) -> ApplicationAnswer:
    """The JSON object on standard output; what does not begin like one is no answer."""
    text = result.stdout.strip()
    return read_answer(text, verb) if text.startswith("{") else ApplicationAnswer()


def _failure(verb: str, result: ExecResult) -> LastcallError:
    return LastcallError(f"{verb} failed: {_describe(result)}")


def _describe(result: ExecResult) -> str:
    line = _first_line(result)
    return f"exit code {result.code}{f': {line}' if line else ''}"


def _first_line(result: ExecResult) -> str:
    lines = result.stderr.strip().splitlines()
    return shorten_message(lines[0]) if lines else ""
