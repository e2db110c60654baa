"""The parameters that a fence agent declares, and the rules that given parameters break (pure).

Agents describe themselves in XML when they are asked for the action ``metadata`` (ClusterLabs' Fence Agent API). A
renamed parameter appears under both names: the new one ``obsoletes`` the old one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from lastcall.errors import InvalidInput
from lastcall.model.fence_policy_rules import SECRETS

_TYPES = {
    "boolean": ("1|0|yes|no|on|off|true|false", "must be 1 or 0"),
    "integer": ("-?[0-9]+", "must be a whole number"),
    "second": ("[0-9]+", "must be a number of whole seconds"),
}
_REFUSED = {
    "action": "is lastcall's to give",
    "help": "makes the agent do nothing",
    "version": "makes the agent do nothing",
    "verbose": "writes passwords into logs",
    "verbose_level": "writes passwords into logs",
    "debug": "writes passwords into a file",
    "debug_file": "writes passwords into a file",
    "hexadecimal_kg": "cannot be given: the agent shows the key in the arguments of ipmitool",
}
_RUNS_PROGRAMS = ("_script", "_path")
_NEEDED = {"fence_redfish": ("systems_uri", "or the agent takes the last of all systems, whichever machine that is")}


@dataclass(frozen=True)
class AgentParameter:
    """One parameter of an agent; ``choices`` are empty if any text of its type is valid."""

    name: str
    type: str
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentSchema:
    """The parameters of one agent. ``obsoletes`` maps the new name of a parameter to its old one."""

    program: str
    parameters: Mapping[str, AgentParameter]
    obsoletes: Mapping[str, str]
    actions: frozenset[str]


def parse_metadata(program: str, metadata: bytes) -> AgentSchema:
    """Parses the agent's metadata. Raises InvalidInput if it does not describe a fence agent."""
    try:
        root = ET.fromstring(metadata)  # noqa: S314 - what our own programs print
    except ET.ParseError as error:
        raise InvalidInput(program, [f"metadata: not XML: {error}"]) from error
    parameters = [_parse_parameter(one) for one in root.iterfind("parameters/parameter") if one.get("name")]
    if not parameters:
        raise InvalidInput(program, ["metadata: it describes no parameter"])
    return AgentSchema(
        program=program,
        parameters={one.name: one for one in parameters},
        obsoletes={
            one.get("name", ""): one.get("obsoletes", "")
            for one in root.iterfind("parameters/parameter")
            if one.get("obsoletes")
        },
        actions=frozenset(one.get("name", "") for one in root.iterfind("actions/action")),
    )


def parameter_violations(schema: AgentSchema, parameters: Mapping[str, str], secrets: Mapping[str, str]) -> list[str]:
    """All violations in the parameters for an agent, each with parameter, value and rule; secrets are not shown."""
    return [
        *_exposed_secrets(parameters),
        *_value_violations(schema, parameters, shown=True),
        *_value_violations(schema, secrets, shown=False),
        *_missing_parameters(schema, {**parameters, **secrets}),
        *_repeated_parameters(schema, [*parameters, *secrets]),
    ]


def _parse_parameter(element: ET.Element) -> AgentParameter:
    content = element.find("content")
    kind = "string" if content is None else content.get("type", "string")
    choices = () if content is None else tuple(option.get("value", "") for option in content.iterfind("option"))
    return AgentParameter(
        name=element.get("name", ""),
        type=kind,
        required=element.get("required") == "1",
        choices=tuple(choice.strip('"') for choice in choices),
    )


def _value_violations(schema: AgentSchema, given: Mapping[str, str], *, shown: bool) -> Iterator[str]:
    for name, value in given.items():
        if rule := _broken_rule(schema, name, value):
            yield f"{name}: {value if shown and not name.endswith(SECRETS) else '(secret)'}: {rule}"


def _exposed_secrets(given: Mapping[str, str]) -> Iterator[str]:
    for name in given:
        if name.endswith(SECRETS):
            yield f"{name}: (secret): must stand in secretParameters"


def _broken_rule(schema: AgentSchema, name: str, value: str) -> str:
    """The rule that one parameter breaks; empty if none."""
    if name in _REFUSED:
        return _REFUSED[name]
    if name.endswith(_RUNS_PROGRAMS):
        return "would run a program that the policy names"
    parameter = schema.parameters.get(name)
    if parameter is None:
        return f"{schema.program} knows no parameter {name}"
    if "\n" in value or "\r" in value or "\0" in value:
        return "must be one line"
    pattern, rule = _TYPES.get(parameter.type, (".*", ""))
    if not re.fullmatch(pattern, value, re.IGNORECASE):
        return rule
    if parameter.choices and value not in parameter.choices:
        return f"must be one of {', '.join(parameter.choices)}"
    return ""


def _missing_parameters(schema: AgentSchema, given: Mapping[str, str]) -> Iterator[str]:
    """Required parameters that are missing under any of their names; ``action`` is always given."""
    old = frozenset(schema.obsoletes.values())
    required = [one.name for one in schema.parameters.values() if one.required and one.name not in ("action", *old)]
    for name in required:
        if name not in given and schema.obsoletes.get(name) not in given:
            yield f"{name}: must be given, {schema.program} needs it"
    name, why = _NEEDED.get(schema.program, ("", ""))
    if name and not any(given.get(one) for one in (name, schema.obsoletes.get(name, ""))):
        yield f"{name}: must be given, {why}"


def _repeated_parameters(schema: AgentSchema, given: Sequence[str]) -> Iterator[str]:
    for name in sorted(name for name, times in Counter(given).items() if times > 1):
        yield f"{name}: must not stand among parameters and secretParameters both"
    for new, old in schema.obsoletes.items():
        if new in given and old in given:
            yield f"{old}: is the old name of {new}, which is given too"
