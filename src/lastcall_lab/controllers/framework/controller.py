"""The interface of a controller: which objects a change affects, and what to do about each of them."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from lastcall_lab.controllers.framework.actions import Decision
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View

CUSTOM = "*"
"""In ``resources``: all custom resources while they are served."""


class Controller(Protocol):
    """One controller. Unless its docstring says otherwise, it keeps no state that it cannot rebuild from the view."""

    name: str
    """The name in ``kube-controller-manager --controllers``, by which it can also be disabled."""
    resources: Sequence[str]
    """The resources that it watches."""

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The keys to reconcile because ``obj`` was added, changed or deleted."""
        ...

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The actions for a key at ``now`` (seconds since 1970; pure). The view contains all earlier writes for it."""
        ...
