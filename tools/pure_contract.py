"""A contract of import-linter: a module whose docstring says "(pure)" imports nothing that does I/O or has a clock."""

import ast
from pathlib import Path

from grimp import ImportGraph
from importlinter.application import output
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck

MARK = "(pure)"


class PureModulesContract(Contract):
    """Modules with the mark must not import ``forbidden_modules``; an empty set of such modules breaks it too."""

    type_name = "pure"

    forbidden_modules = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept if no marked module imports a forbidden one directly."""
        pure = sorted(module for module in graph.modules if is_marked(module))
        faults = [
            f"{module} -> {imported}"
            for module in pure
            for imported in sorted(graph.find_modules_directly_imported_by(module))
            if imported.partition(".")[0] in self.forbidden_modules
        ]
        return ContractCheck(
            kept=bool(pure) and not faults, metadata={"faults": faults or ([] if pure else ["no module has the mark"])}
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints each import that breaks the contract."""
        for fault in check.metadata["faults"]:
            output.print_error(fault)


def is_marked(module: str, root: Path = Path("src")) -> bool:
    """Whether the module's docstring has the mark; False for modules that are not below ``root``."""
    path = root / module.replace(".", "/")
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return MARK in (ast.get_docstring(ast.parse(file.read_text())) or "")
    return False
