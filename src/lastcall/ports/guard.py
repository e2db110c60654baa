"""Port for the applications of guarded pods: a provider prepares one of their members for its deletion.

``adapters.guard`` implements it; others are found as entry points of the group ``lastcall.guard_providers``.
"""

from enum import Enum
from typing import Any, Protocol

from lastcall.model.base import Facts
from lastcall.model.pods import Pod
from lastcall.model.selectors import LabelSelector


class PreparationProgress(Enum):
    """What a provider says of a preparation."""

    PREPARING = "preparing"
    READY = "ready"
    """The application can do without the member."""
    STALLED = "stalled"
    """It makes no progress by itself: a person is needed."""
    LOST = "lost"
    """What was prepared does not stand any more, or needs another step: ``prepare`` is called again."""


class PreparationReport(Facts, frozen=True):
    """How far a preparation is; ``message`` is for a person. Percent is 0 to 100, seconds are at least 0."""

    progress: PreparationProgress
    percent: int | None = None
    eta_seconds: int | None = None
    message: str = ""


class MemberHealth(Facts, frozen=True):
    """Whether an application can give up one more member; ``message`` says what is missing."""

    is_healthy: bool
    message: str = ""


class GuardedMember(Facts, frozen=True):
    """One member of an application, and the others: the pods of its group as the API server has them, by name.

    Of a member that is gone ``pod`` has no more than its name, namespace and uid.
    """

    pod: Pod
    others: tuple[Pod, ...] = ()


class GuardProvider(Protocol):
    """Prepares the members of one kind of application, with the settings of one GuardPolicy.

    Each method may be called again after a crash or an error, in another process too, and then does what is left to do;
    the member's uid is the key. Unavailable and TimedOut: the application could not be reached, and the outcome is
    unknown. LastcallError: it said no. Messages contain no secret. No method outlasts its cancellation.
    """

    @property
    def is_reversible(self) -> bool:
        """Whether ``cancel`` undoes a preparation; otherwise its start is the point of no return."""
        ...

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether all members that the application needs are there, so that a preparation may start. Changes nothing."""
        ...

    async def prepare(self, member: GuardedMember) -> None:
        """Starts to move the member's work elsewhere, and returns before that is done. Without effect if it was begun."""
        ...

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """How far it is, and whether what was prepared still stands. Changes nothing."""
        ...

    async def cancel(self, member: GuardedMember) -> None:
        """Undoes a preparation as far as it can be undone: the member stays. Without effect if there is none."""
        ...

    async def release(self, member: GuardedMember) -> None:
        """Ends a preparation whose member is gone and has been replaced. Without effect if there is nothing to end."""
        ...


class GuardProviderFactory(Protocol):
    """Creates the providers of one name, as in ``provider: {NAME: {...}}``."""

    def check_settings(self, settings: dict[str, Any]) -> list[str]:
        """Each violation with field (from ``spec.provider.NAME`` on), value and rule; empty if there is none."""
        ...

    def make_provider(self, settings: dict[str, Any], access: "NamespaceAccess") -> GuardProvider:
        """A provider with valid settings, which reaches what ``access`` lets it reach."""
        ...


class MemberStream(Protocol):
    """A connection to a member."""

    async def read(self, most: int) -> bytes:
        """At most so many bytes; b"" at the end. Unavailable if the connection is lost."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends all of it. Unavailable if the connection is lost."""
        ...

    def close(self) -> None:
        """Ends it now."""
        ...


class ExecResult(Facts, frozen=True):
    """How a command in a container has ended; the outputs hold at most 64 KiB each."""

    code: int
    stdout: str = ""
    stderr: str = ""


class NamespaceAccess(Protocol):
    """What a provider may reach: the pods and Secrets of the GuardPolicy's namespace, with the rights bound there."""

    async def connect(
        self, pod: Pod, port: int, *, tls_name: str = "", ca: str = "", certificate: str = "", key: str = ""
    ) -> MemberStream:
        """A connection to a port of a pod; with TLS if ``tls_name`` or ``ca`` (PEM) is given.

        ``certificate`` and ``key`` (PEM) are shown to a server that asks for them.

        RefusedForSafety if its address is not that of a pod of the namespace, or is one of the node, the machine itself
        or the control plane. Unavailable if nobody answers.
        """
        ...

    async def list_pods(self, selector: LabelSelector) -> tuple[Pod, ...]:
        """The pods of the namespace that it selects and that have an address, as they are now, by name."""
        ...

    async def read_secret(self, name: str, key: str) -> str:
        """A value of a Secret of the namespace. LastcallError if it is missing, or may not be read."""
        ...

    async def execute(self, pod: Pod, container: str, command: tuple[str, ...]) -> ExecResult:
        """Runs a command in a container ("" for the first) by ``pods/exec``. LastcallError if that is not permitted."""
        ...
