"""Server-side tables: the columns and cells that ``kubectl get`` shows.

They are those of ``pkg/printers/internalversion/printers.go``, one module per family of kinds.
"""

from lastcall_lab.apiserver.tables.table_builder import Include, build_table, parse_include

__all__ = ["Include", "build_table", "parse_include"]
