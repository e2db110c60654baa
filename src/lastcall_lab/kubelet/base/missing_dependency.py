"""The error for a missing dependency of a container or volume, which can appear later."""

from lastcall.errors import LastcallError


class MissingDependency(LastcallError):
    """A ConfigMap, Secret, key, field or claim that does not exist. The kubelet retries after a pause."""
