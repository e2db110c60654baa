"""Errors, named by what the caller may do about them.

Each carries the exit code of the command line: 0 done, 1 a finding or a failure, 2 usage or invalid input,
3 refused for safety, 4 timed out.
"""


class LastcallError(Exception):
    """A failure that is told to a person as it is, without a traceback."""

    exit_code = 1


class InvalidInput(LastcallError):
    """The user must correct something; every violation is listed, each with field, value and rule."""

    exit_code = 2

    def __init__(self, source: str, violations: "list[str] | tuple[str, ...]") -> None:
        self.source = source
        self.violations = tuple(violations)
        super().__init__("\n".join(f"{source}: {violation}" for violation in self.violations))


class RefusedForSafety(LastcallError):
    """Going on could do harm; the message says what and how to make it safe."""

    exit_code = 3


class TimedOut(LastcallError):
    """It may be tried again: nothing is known to be wrong."""

    exit_code = 4


class Unavailable(LastcallError):
    """A service (bus, logind, runtime) cannot be reached now; retry with backoff."""


class ShutdownUnderWay(LastcallError):
    """logind grants no lock while a shutdown is being prepared (org.freedesktop.login1.OperationInProgress)."""


class NotPermitted(LastcallError):
    """The operating system refuses; retrying does not help until an administrator changes something."""
