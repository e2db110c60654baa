"""A number, or a percentage of another one (``k8s.io/apimachinery/pkg/util/intstr``)."""


def resolve_portion(value: int | str | None, whole: int, *, up: bool) -> int:
    """What ``2`` or ``"25%"`` means of ``whole``, rounded up or down; 0 for None.

    ValueError, in the words of ``intstr.GetScaledValueFromIntOrPercent``, for anything else.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    number = value.removesuffix("%")
    if number == value or not number.isdecimal():
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    exact = int(number) * whole
    return -(-exact // 100) if up else exact // 100
