"""``meta/v1 LabelSelector`` as a field of lastcall's own kinds, with the bounds and descriptions of their definitions."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated

from msgspec import Meta, field

from lastcall.model.base import Facts
from lastcall.model.decoding import quote_value
from lastcall.model.label_selector import Requirement, build_matcher
from lastcall.model.patterns import QUALIFIED


class SelectorOperator(Enum):
    """The operators of ``matchExpressions``."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Expression(Facts, frozen=True):
    """A requirement on one label (meta/v1 LabelSelectorRequirement)."""

    key: Annotated[str, Meta(pattern=QUALIFIED, max_length=317, description="The label's key.")]
    operator: Annotated[SelectorOperator, Meta(description="How the label's value is compared.")]
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=63)], ...],
        Meta(max_length=64, description="At least one for In and NotIn, none for Exists and DoesNotExist."),
    ] = ()


class LabelSelector(Facts, frozen=True):
    """Requirements on the labels of objects, all of which must be met; without requirements it selects all."""

    match_labels: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]], Meta(max_length=64, description="Labels and their values.")
    ] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[Expression, ...], Meta(max_length=64, description="Requirements on single labels.")
    ] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects an object with these labels."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        if not self.match_expressions:
            return True
        others = (Requirement(one.key, one.operator.value, one.values) for one in self.match_expressions)
        return build_matcher(others)(labels)


def selector_violations(selector: LabelSelector, field_path: str) -> Iterator[str]:
    """How many values each operator takes (``metav1.LabelSelectorAsSelector``)."""
    for one in selector.match_expressions:
        takes = one.operator in (SelectorOperator.IN, SelectorOperator.NOT_IN)
        if takes != bool(one.values):
            rule = "at least one value must be given" if takes else "no value may be given"
            at = f"{field_path}.matchExpressions[{one.key}].values"
            yield f"{at}: {quote_value(list(one.values))}: {rule} for {one.operator.value}"
