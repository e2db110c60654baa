"""The scenarios that come with lastcall."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from lastcall.adapters.host.bounded_reads import CONFIG_BYTES, read_file
from lastcall.errors import InvalidInput

CHAOS = "chaos"
"""The name of the story that each seed tells in its own way (``chaos.generate_scenario``): there is no file of it."""

FAILOVER_CHAOS = "failover-chaos"
"""Another one, with the failover controller (``failover_chaos.generate_scenario``)."""

KUBELET_CHAOS = "kubelet-chaos"
"""Another one, of the agent beside a kubelet (``kubelet_chaos.generate_scenario``)."""

DRAIN_CHAOS = "drain-chaos"
"""Another one, of ``lastcall drain`` (``drain_chaos.generate_scenario``)."""

_DIRECTORY = Path(__file__).parent / "scenarios"


def shipped_scenarios() -> Mapping[str, Path]:
    """Their files, by name."""
    return {path.stem: path for path in sorted(_DIRECTORY.glob("*.yaml"))}


def scenario_text(scenario: str) -> bytes:
    """The text of a shipped scenario, or else of a file; InvalidInput if it is neither."""
    known = shipped_scenarios()
    try:
        return read_file(known.get(scenario, Path(scenario)), CONFIG_BYTES)
    except FileNotFoundError as error:
        names = [*known, CHAOS, FAILOVER_CHAOS, KUBELET_CHAOS, DRAIN_CHAOS]
        close = get_close_matches(scenario, names, n=1)
        meant = f'; did you mean "{close[0]}"?' if close else ""
        rule = f"neither a file nor one of the shipped scenarios, {', '.join(names)}{meant}"
        raise InvalidInput("simulate", [f"SCENARIO: {scenario}: {rule}"]) from error
    except OSError as error:
        raise InvalidInput(scenario, [f"cannot be read: {error.strerror}"]) from error
