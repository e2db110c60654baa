"""The fake BMC of a machine, with faults that can be injected: wrong, late or missing answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lastcall.aio import wait_first
from lastcall.errors import InvalidInput, TimedOut
from lastcall.model import duration
from lastcall.ports.node import Clock
from lastcall_lab.machines import identifiers
from lastcall_lab.machines.power import LabMachine, PowerSwitch

PATIENCE = 10.0
"""Seconds after which a caller gets no answer."""

_FLAG = {"true": True, "false": False}
_WORDS: Mapping[str, Mapping[str, bool | None]] = {
    "says": {"on": True, "off": False, "truth": None},
    "deaf": _FLAG,
    "stuck": _FLAG,
}
"""The faults with fixed values, and what each value means."""


@dataclass(frozen=True)
class BmcFaults:
    """The injected faults of a BMC; none by default."""

    says: bool | None = None
    """The power state that it reports, on or off, whatever is true; None: the true one."""
    late: float = 0.0
    """Seconds until it answers."""
    deaf: bool = False
    """It does not answer."""
    stuck: bool = False
    """It reports that it has switched, but has not."""
    wired: str = ""
    """The machine that it reports and switches instead of its own; empty: its own."""

    def with_values(self, wanted: Mapping[str, str]) -> "BmcFaults":
        """The faults with some of them changed, by name; InvalidInput lists unknown names and invalid values.

        ``says`` is on, off or truth; ``late`` a Go duration; ``deaf`` and ``stuck`` are true or false; ``wired`` is a
        machine's name.
        """
        faults, wrong = self, []
        for name, text in wanted.items():
            try:
                faults = replace(faults, **{name: _parse_value(name, text)})
            except ValueError as error:
                wrong.append(f'{name}: "{text}": {error}')
        if wrong:
            raise InvalidInput("bmc", wrong)
        return faults

    def describe(self) -> Sequence[str]:
        """A text for each fault, for people; none without faults."""
        descriptions = {
            f"says {'on' if self.says else 'off'}": self.says is not None,
            f"late {duration.format_seconds(self.late)}": self.late > 0,
            "deaf": self.deaf,
            "stuck": self.stuck,
            f"wired to {self.wired}": bool(self.wired),
        }
        return [word for word, so in descriptions.items() if so]


class Bmc:
    """The BMC of a machine; ``faults`` may be set at any time, and applies to later requests."""

    def __init__(self, machine: LabMachine, clock: Clock, machines: Mapping[str, LabMachine] | None = None) -> None:
        self._own = machine
        self._machines = machines or {}
        self._clock = clock
        self.faults = BmcFaults()

    @property
    def uuid(self) -> str:
        """The UUID of the controlled machine, as in its firmware."""
        return identifiers.system_uuid(self._wired_machine.name)

    @property
    def _wired_machine(self) -> LabMachine:
        return self._machines.get(self.faults.wired, self._own)

    async def is_powered(self) -> bool:
        """Whether the machine is on, as far as the BMC reports. Raises TimedOut if it does not answer."""
        faults = self.faults
        await self._wait_for_answer(faults)
        return self._wired_machine.is_powered if faults.says is None else faults.says

    async def power(self, *, on: bool) -> None:
        """Switches; a machine that is on already stays as it is, even hung or cut off.

        Raises TimedOut if it does not answer; an answer does not prove that it has switched.
        """
        faults = self.faults
        await self._wait_for_answer(faults)
        if not faults.stuck and on is not self._wired_machine.is_powered:
            await self._wired_machine.turn(PowerSwitch.ON if on else PowerSwitch.OFF)

    async def _wait_for_answer(self, faults: BmcFaults) -> None:
        seconds = float("inf") if faults.deaf else faults.late
        if await wait_first(self._clock.sleep(seconds), self._clock.sleep(PATIENCE)) == 1:
            raise TimedOut(f"the BMC of {self._own.name} does not answer")


def _parse_value(name: str, text: str) -> Any:
    """The value of a fault; ValueError if it is invalid."""
    if name == "late":
        return _parse_seconds(text)
    if name == "wired":
        return text
    if name not in _WORDS:
        raise ValueError(f"is no fault of a BMC; there are late, wired, {', '.join(_WORDS)}")
    if text not in _WORDS[name]:
        raise ValueError(f"must be {', '.join(_WORDS[name])}")
    return _WORDS[name][text]


def _parse_seconds(text: str) -> float:
    nanoseconds = duration.parse(text)
    if nanoseconds < 0:
        raise ValueError("must not be negative")
    return nanoseconds / duration.SECOND
