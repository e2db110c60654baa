"""What Kubernetes' types say about the fields of a kind, and the check of bodies against it."""

from lastcall_lab.apiserver.schema.schemas import Schemas
from lastcall_lab.apiserver.schema.types import SchemaNode

__all__ = ["SchemaNode", "Schemas"]
