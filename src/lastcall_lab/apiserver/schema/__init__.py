"""The field types of Kubernetes' kinds, and the decoding of bodies by them."""

from lastcall_lab.apiserver.schema.schemas import Schemas
from lastcall_lab.apiserver.schema.types import SchemaNode

__all__ = ["SchemaNode", "Schemas"]
