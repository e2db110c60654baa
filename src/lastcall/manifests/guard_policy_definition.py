"""The CustomResourceDefinition of GuardPolicy (pure)."""

from lastcall import names
from lastcall.manifests.resource_definitions import Object, build_definition, printer_column, root_schema
from lastcall.manifests.structural_schema import SchemaExtras, ValidationRule, schema_of
from lastcall.model.guard_policy import GuardPolicy, GuardSpec, GuardStatus, PreparationState, RequestedRemoval

_RULES = SchemaExtras(
    rules={
        "GuardSpec.maxUnavailable": [
            ValidationRule(
                "type(self) == int ? self >= 1 : self.matches('^[1-9][0-9]{0,3}%$')",
                "must be a number from 1, or a percentage from 1%",
            )
        ],
        "Expression": [
            ValidationRule(
                "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                "values: at least one must be given for In and NotIn, none for Exists and DoesNotExist",
            )
        ],
    },
    fields={
        "GuardSpec.provider": {
            "additionalProperties": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
)
_STATUS = SchemaExtras(
    fields={
        "HeldPod.state": {"enum": sorted(one.value for one in PreparationState if one is not PreparationState.UNKNOWN)},
        "HeldPod.request": {
            "enum": sorted(one.value for one in RequestedRemoval if one is not RequestedRemoval.UNKNOWN)
        },
        "GuardStatus.pods": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
        "GuardStatus.conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    },
    defaults=False,
)


def guard_policy_definition() -> Object:
    """The CustomResourceDefinition, generated from the structs that read the objects."""
    return build_definition(
        names.GUARD_POLICY,
        short=["gp"],
        scope="Namespaced",
        subresources={"status": {}},
        schema=root_schema(GuardPolicy, spec=schema_of(GuardSpec, _RULES), status=schema_of(GuardStatus, _STATUS)),
        columns=[
            printer_column(
                "Accepted",
                '.status.conditions[?(@.type=="Accepted")].status',
                "Whether the guard can follow it, and if not, why.",
            ),
            printer_column("Held", ".status.heldPods", "How many pods are held now.", kind="integer"),
            printer_column("Ready", ".status.readyPods", "How many of them may be deleted.", kind="integer"),
            printer_column("Pod", ".status.pods[0].name", "The first pod of the status."),
            printer_column("State", ".status.pods[0].state", "How far its preparation is."),
            printer_column("Message", ".status.pods[0].message", "What is waited for.", priority=1),
            printer_column("Age", ".metadata.creationTimestamp", "", kind="date"),
        ],
    )
