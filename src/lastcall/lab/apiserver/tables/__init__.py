"""Lists as people read them: the columns and cells that ``kubectl get`` asks the server for.

They are those of ``pkg/printers/internalversion/printers.go``, one module for each family of kinds.
"""

from lastcall.lab.apiserver.tables.table import Include, included, table

__all__ = ["Include", "included", "table"]
