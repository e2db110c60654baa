"""Lists as people read them: the columns and cells that ``kubectl get`` asks the server for.

They are those of ``pkg/printers/internalversion/printers.go``, one module for each family of kinds.
"""

from lastcall_lab.apiserver.tables.table_builder import Include, build_table, parse_include

__all__ = ["Include", "build_table", "parse_include"]
