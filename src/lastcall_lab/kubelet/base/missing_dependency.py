"""What keeps a container or a volume from being made now, and may be there later."""

from lastcall.errors import LastcallError


class MissingDependency(LastcallError):
    """A config map, a secret, a key of one, a field, a claim: looked for again after a while."""
