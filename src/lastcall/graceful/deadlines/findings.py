"""What one look at a source has found (pure)."""

from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.model.shutdown_notice import ShutdownNotice


class SourceFinding(Facts, frozen=True):
    """The notice that the source gives now, None if the machine stays up; ``warning``: what else it says, for people."""

    notice: ShutdownNotice | None = None
    warning: str = ""


class UnreadableAnswer(LastcallError):
    """A source has answered what its documentation does not describe: nothing is concluded from it."""
