"""Evaluates the Common Expression Language for custom resource rules and webhook match conditions.

The language comes from the library ``common-expression-language``, and the functions that Kubernetes adds from
``library_functions``. Errors have the words of cel-go, which users see in API responses. The library is imported with
the first expression, because most servers never compile one.

The library does not support ``cel.bind``, ``optMap``, and macros over keys and values at once, and it does not know the
types of fields at compile time.
"""

import functools
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lastcall_lab.apiserver.cel import cost_limit, library_functions, optional_syntax

if TYPE_CHECKING:
    import cel

_MACRO = re.compile(r"\.(?:all|exists|exists_one|existsOne|filter|map)\(\s*([A-Za-z_]\w*)\s*,")
_UNDEFINED = re.compile(r"Undefined variable or function: '([^']*)'")
_FUNCTION = re.compile(
    r"Function '[^']*' error: (?:Python function call failed: \w+: )?(.*)\. Check function", re.DOTALL
)


TOO_MUCH = "operation cancelled: actual cost limit exceeded"
"""The error of a too expensive expression."""


class CelError(Exception):
    """The expression does not compile or evaluate; the text is that of the real server."""


def compile_error(expression: str, *, declared: Collection[str] | None = None) -> str:
    """Why the expression does not compile, with the prefix ``compilation failed: ``; empty if it does.

    ``declared`` are the known variables; without it every name is allowed.
    """
    try:
        program = _compile(expression)
    except CelError as error:
        return str(error)
    if declared is None:
        return ""
    known = {*declared, *_MACRO.findall(expression), *_ROOTS, *_TYPE_NAMES, "optional"}
    unknown = [name for name in program.variables() if name not in known]
    reports = [_report(expression, name, f"undeclared reference to '{name}' (in container '')") for name in unknown]
    return "compilation failed: " + "\n".join(reports) if reports else ""


def undefined_field_error(expression: str, field: str) -> str:
    """The real server's error about a field that the schema does not have, at its first use."""
    return "compilation failed: " + _report(expression, field, f"undefined field '{field}'", field=True)


def error_report_at(expression: str, start: int, why: str) -> str:
    """The real server's report of an error at ``start``."""
    return "compilation failed: " + _error_report(expression, start, why)


def evaluate(
    expression: str, variables: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] = MappingProxyType({})
) -> Any:
    """The value as JSON, or a datetime, a timedelta or bytes. CelError if evaluation fails.

    ``functions`` are additional ones for this expression.
    """
    program = _compile(expression)
    if cost_limit.exceeds_limit(expression, variables):
        raise CelError(TOO_MUCH)
    try:
        return program.execute(_environment(program, variables, functions))
    except KeyError as error:
        raise CelError(f"no such key: {error.args[0]}") from None
    except TypeError:
        raise CelError("no such overload") from None
    except ZeroDivisionError as error:
        raise CelError("modulus by zero" if "modulo" in str(error) else "division by zero") from None
    except OverflowError:
        raise CelError("integer overflow") from None
    except IndexError as error:
        raise CelError(str(error)) from None
    except (RuntimeError, ValueError) as error:
        raise CelError(_words(str(error), variables)) from None


@functools.lru_cache(maxsize=1024)
def _compile(expression: str) -> "cel.Program":
    import cel  # noqa: PLC0415  (0.2 s that a server without expressions does not spend)

    logging.getLogger("cel").setLevel(logging.ERROR)  # the library logs a warning for every error raised here
    try:
        return cel.compile(optional_syntax.rewrite_optionals(expression))
    except ValueError as error:
        said = str(error).removeprefix(f"Failed to parse expression '{expression}': ")
        raise CelError("compilation failed: " + said.replace("\n| ", "\n | ")) from None


def evaluate_admission(
    expression: str, variables: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """Evaluates an admission expression, whose objects may be null.

    cel-go treats a field of null as a field that does not exist.
    """
    try:
        return evaluate(expression, variables, functions)
    except CelError:
        if None not in variables.values():
            raise
        there = {name: {} if value is None else value for name, value in variables.items()}
    try:
        evaluate(expression, there, functions)
    except CelError as other:
        raise CelError(str(other)) from None
    return evaluate(expression, variables, functions)


def present_fields(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields that have a value, with optional values unwrapped."""
    import cel  # noqa: PLC0415

    for name, value in fields.items():
        if not isinstance(value, cel.OptionalValue):
            yield name, value
        elif value.has_value():
            yield name, value.value()


def _environment(
    program: "cel.Program", variables: Mapping[str, Any], more: Mapping[str, Callable[..., Any]]
) -> "cel.Context":
    import cel  # noqa: PLC0415

    wanted = {*program.functions(), *(name for root in program.variables() for name in _ROOTS.get(root, ()))}
    functions = {name: library_functions.FUNCTIONS[name] for name in wanted if name in library_functions.FUNCTIONS}
    if optional_syntax.FUNCTION in wanted:
        functions[optional_syntax.FUNCTION] = _optional_field
    return cel.Context(variables=dict(variables), functions={**functions, **more})


def optional_value(value: Any, *, there: bool) -> Any:
    """A variable for an optional value: ``oldSelf`` of rules with ``optionalOldSelf``."""
    import cel  # noqa: PLC0415

    return cel.OptionalValue.of(value) if there else cel.OptionalValue.none()


def _optional_field(target: Any, key: Any) -> Any:
    """The optional field or item; empty if the base is empty."""
    import cel  # noqa: PLC0415

    if isinstance(target, cel.OptionalValue):
        if not target.has_value():
            return target
        target = target.value()
    there = key in target if isinstance(target, dict) else isinstance(key, int) and 0 <= key < len(target)
    return optional_value(target[key] if there else None, there=there)


def _words(said: str, variables: Mapping[str, Any]) -> str:
    """Translates the library's error to cel-go's words."""
    if found := _UNDEFINED.search(said):
        known = found[1] in library_functions.FUNCTIONS or found[1] in _NATIVE
        return "no such overload" if known else f"undeclared reference to '{found[1]}' (in container '')"
    if found := _FUNCTION.search(said):
        return found[1]
    return said


def _report(expression: str, name: str, why: str, *, field: bool = False) -> str:
    """An error at the position of ``name``, as cel-go shows it; for a field, the position of its dot."""
    found = re.search(rf"(?<=\.){re.escape(name)}\b" if field else rf"(?<![\w.]){re.escape(name)}\b", expression)
    return _error_report(expression, found.start() - field if found else 0, why)


def _error_report(expression: str, start: int, why: str) -> str:
    line = expression.count("\n", 0, start)
    column = start - (expression.rfind("\n", 0, start) + 1)
    text, dots = expression.splitlines()[line], "." * column
    return f"ERROR: <input>:{line + 1}:{column + 1}: {why}\n | {text}\n | {dots}^"


def _roots(functions: Mapping[str, Callable[..., Any]]) -> dict[str, list[str]]:
    roots: dict[str, list[str]] = {}
    for name in functions:
        if "." in name:
            roots.setdefault(name.partition(".")[0], []).append(name)
    return roots


_ROOTS = _roots(library_functions.FUNCTIONS)
"""``sets`` and the functions below it, such as ``sets.contains``."""

_TYPE_NAMES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})
"""What ``type(x)`` is compared with."""

_NATIVE = frozenset(
    (
        *("size", "contains", "startsWith", "endsWith", "matches", "type", "dyn", "duration", "timestamp"),
        *("int", "uint", "double", "string", "bytes", "bool", "getFullYear", "getMonth", "getDate", "getDayOfMonth"),
        *("getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    )
)
"""Built-in functions; the library reports wrong argument types as undefined functions."""
