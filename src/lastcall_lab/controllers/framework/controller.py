"""What a controller is: which objects it looks at when something changes, and what it decides about each."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from lastcall_lab.controllers.framework.actions import Decision
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View

CUSTOM = "*"
"""In ``resources``: whatever CustomResourceDefinitions make, from when it is served until it is not."""


class Controller(Protocol):
    """One controller. It keeps nothing that it could not find out again, unless it says so."""

    name: str
    """As ``kube-controller-manager --controllers`` names it; also the name under which it can be switched off."""
    resources: Sequence[str]
    """What it watches."""

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """What is to be looked at since ``obj`` has come, changed or gone."""
        ...

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """What is to be done about it, at ``now`` seconds since 1970 (pure). The view has all of its earlier writes."""
        ...
