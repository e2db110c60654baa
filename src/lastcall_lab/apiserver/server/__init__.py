"""The API server: connections, HTTP, and the handling of requests by the lower layers."""
