"""The small mistakes that can be made in a module: each is one change of one expression or statement."""

import ast
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OTHER_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
UNCHANGED_FIELDS = {"annotation", "returns", "decorator_list"}
"""What is written for readers and type checkers; a mistake there changes no behaviour."""


@dataclass(frozen=True, order=True)
class Mutation:
    """Bytes ``start`` to ``end`` of ``file`` become ``new``."""

    file: str
    start: int
    end: int
    line: int
    old: str
    new: str

    def applied_to(self, source):
        return source[: self.start] + self.new.encode() + source[self.end :]


def find_mutations(file, source):
    """All mutations of a module, whose source is given as bytes."""
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node, new in _changes(ast.parse(source)):
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        old = source[start:end].decode()
        yield Mutation(file, start, end, node.lineno, old, new)


def _changes(node):
    """Pairs of a node, and the text that takes its place."""
    yield from _changes_of(node)
    for field, value in ast.iter_fields(node):
        if field in UNCHANGED_FIELDS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _only_tells(child):
                yield from _changes(child)


def _only_tells(node):
    """A text with values, whose positions Python 3.11 does not tell, or a line of a log."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and ast.unparse(node).startswith("log."))


def _changes_of(node):
    match node:
        case ast.Compare(left, ops, right):
            for place, one in enumerate(ops):
                others = [*ops[:place], COMPARISONS[type(one)](), *ops[place + 1 :]]
                yield node, _text(ast.Compare(left, others, right))
        case ast.BoolOp(operator, values):
            yield node, _text(ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values))
        case ast.UnaryOp(ast.Not(), operand):
            yield node, _text(operand)
        case ast.Constant(bool() as value):
            yield node, repr(not value)
        case ast.Constant(int() | float() as value):
            yield node, f"({value + 1!r})"
            yield node, f"({value - 1!r})"
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right) if not _is_text(left, right):
            yield node, _text(ast.BinOp(left, ast.Sub() if isinstance(operator, ast.Add) else ast.Add(), right))
        case ast.Call(ast.Name(name) as function) if name in OTHER_NAMES:
            yield function, OTHER_NAMES[name]
        case ast.If(test, [last]) if isinstance(last, LEAVES):
            yield test, "False"
        case ast.Expr(ast.Call() | ast.Await()):
            yield node, "pass"


def _text(node):
    return f"({ast.unparse(node)})"


def _is_text(*nodes):
    return any(isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", 0), str) for node in nodes)
