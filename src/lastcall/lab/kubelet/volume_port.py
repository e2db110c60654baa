"""The node's part of a storage driver: what the kubelet asks of it."""

from pathlib import Path
from typing import Protocol

from lastcall.adapters.kube.resources import Object


class Volumes(Protocol):
    """Persistent volumes on one node. Both raise LastcallError, with a message for people, and are then tried again."""

    async def mount(self, pod: Object, claim: Object, path: Path) -> None:
        """Makes the volume of a bound claim appear at ``path``, which is not there; again if it has been done.

        The volume is attached to this node when this is called, if it is of a kind that is attached.
        """
        ...

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """Takes it away; nothing is at ``path`` afterwards. Again if it has been done."""
        ...
