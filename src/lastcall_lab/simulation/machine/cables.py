"""A machine's cable that tells when it is cut or mended."""

from collections.abc import Callable

from lastcall_lab.machines.power import NetworkCable


class ObservedCable(NetworkCable):
    """``changed`` hears of each change of ``cut``."""

    changed: Callable[[], None] = staticmethod(lambda: None)
    _cut = False

    @property  # an attribute of the cable, which is told of here
    def cut(self) -> bool:
        """Whether nothing comes through."""
        return self._cut

    @cut.setter
    def cut(self, cut: bool) -> None:
        self._cut = cut
        self.changed()
