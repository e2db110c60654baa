"""The command line of a kube-controller-manager, as far as it concerns the attach-detach controller (pure)."""

from collections.abc import Iterator, Mapping
from typing import Any

from lastcall.model.base import Facts

PROGRAM = "kube-controller-manager"
NO_TIMEOUT = "disable-force-detach-on-timeout"
"""The option that disables force detach after six minutes (``cmd/kube-controller-manager/app/options``)."""

_CONTROLLERS = "controllers"
_ATTACH_DETACH = ("persistentvolume-attach-detach-controller", "attachdetach")
"""The controller's name, and its former name (``cmd/kube-controller-manager/names``)."""
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
"""What Go's ``strconv.ParseBool`` accepts as true."""


class ControllerManager(Facts, frozen=True):
    """One kube-controller-manager: ``where`` it was found, and its ``arguments``."""

    where: str
    arguments: tuple[str, ...]

    @property
    def runs_attach_detach(self) -> bool:
        """Whether its attach-detach controller runs."""
        wanted = self._last_argument(_CONTROLLERS, "*").split(",")
        named = [name for name in _ATTACH_DETACH if name in wanted]
        return not any(f"-{name}" in wanted for name in _ATTACH_DETACH) and bool(named or "*" in wanted)

    @property
    def detaches_on_timeout(self) -> bool:
        """Whether it detaches volumes from a node that is not Ready merely because a time has passed."""
        return self.runs_attach_detach and self._last_argument(NO_TIMEOUT, "false") not in _TRUE

    def _last_argument(self, option: str, default: str) -> str:
        """The last value given for the option, which wins in pflag; pflag treats _ as -."""
        found = default
        for argument in self.arguments:
            name, given, value = argument.removeprefix("--").partition("=")
            if argument.startswith("--") and name.replace("_", "-") == option:
                found = value if given else "true"
        return found


def managers_in_pod(spec: Mapping[str, Any], where: str) -> Iterator[ControllerManager]:
    """The controller managers that the containers of a pod's spec start."""
    containers = spec.get("containers")
    for container in containers if isinstance(containers, list) else ():
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        if any(str(word).rpartition("/")[2] == PROGRAM for word in words):
            yield ControllerManager(where=where, arguments=tuple(map(str, words)))
