"""A small Kubernetes API server for one machine, faithful in everything that node shutdown and failover touch."""

from lastcall_lab.apiserver.server.api_server import ApiServer

__all__ = ["ApiServer"]
