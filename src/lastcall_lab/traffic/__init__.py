"""Services of the lab: each node's view of the endpoints, and proxies for connections."""
