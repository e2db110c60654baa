"""The rules of ``fence_policy_rules`` in CEL, as far as the API server's cost limit allows.

Its cost estimate assumes the greatest length of every list and text. So only the controller checks the entries for each
of 5,000 nodes. The list type ensures that names are unique.
"""

from lastcall.manifests.structural_schema import SchemaExtras, ValidationRule
from lastcall.model.fence_policy_rules import SECRETS
from lastcall.model.fencer import HTTP

_PLACES = ("parameters", "parametersByNode", "parametersFrom", "secretParameters")
_SECRET = " || ".join(f"name.endsWith('{ending}')" for ending in SECRETS)


def _exactly_one(*fields: str, filled: str = "") -> ValidationRule:
    """``filled`` is a map, which counts as given if it is not empty."""
    given = [f"has(self.{one}) && self.{one}.size() > 0" if one == filled else f"has(self.{one})" for one in fields]
    return ValidationRule(
        f"[{', '.join(given)}].filter(given, given).size() == 1", f"must be exactly one of {', '.join(fields)}"
    )


def _all_keys_hold(place: str, holds: str) -> str:
    return f"(!has(self.{place}) || self.{place}.all(name, {holds}))"


def _keys_are_disjoint() -> str:
    pairs = [(a, b) for at, a in enumerate(_PLACES) for b in _PLACES[at + 1 :]]
    return " && ".join(
        f"(!has(self.{a}) || !has(self.{b}) || self.{a}.all(name, !(name in self.{b})))" for a, b in pairs
    )


def _cel_string(text: str) -> str:
    """The text as a CEL string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


RULES = SchemaExtras(
    rules={
        "PolicySpec.suspectAfter": [
            ValidationRule("duration(self) >= duration('1s') && duration(self) <= duration('1h')", "must be 1s to 1h")
        ],
        "PolicyLimits.settle": [ValidationRule("duration(self) <= duration('1h')", "must be at most 1h")],
        "Expression": [
            ValidationRule(
                "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                "values: at least one must be given for In and NotIn, none for Exists and DoesNotExist",
            )
        ],
        "Fencer": [_exactly_one("agent", "redfish", "ec2", "manual")],
        "FromNode": [_exactly_one("annotation", "label")],
        "Setting": [_exactly_one("value", "byNode", "annotation", "label", filled="byNode")],
        "RedfishSpec.address": [
            ValidationRule(
                f"!has(self.value) || self.value.matches({_cel_string(HTTP)})",
                "must be http:// or https:// with a host, and without user or query",
            )
        ],
        "FenceAgentSpec": [
            ValidationRule(
                " && ".join(_all_keys_hold(place, "name.matches('^[a-z][a-z0-9_-]{0,62}$')") for place in _PLACES),
                "parameters: must be small letters, digits, - and _, from a letter on, at most 63",
            ),
            ValidationRule(
                " && ".join(_all_keys_hold(place, "name != 'action'") for place in _PLACES),
                "action: is lastcall's to give",
            ),
            ValidationRule(
                " && ".join(_all_keys_hold(place, f"!({_SECRET})") for place in _PLACES[:3]),
                f"what ends in {', '.join(SECRETS)}: must stand in secretParameters",
            ),
            ValidationRule(_keys_are_disjoint(), "each parameter must stand in one place only"),
        ],
    },
    fields={
        "PolicySpec.fencers": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        # The one applies to numbers only, the other to texts only.
        "PolicyLimits.minHealthy": {"minimum": 0, "pattern": "^0*(100|[0-9]{1,2})%$"},
    },
)
