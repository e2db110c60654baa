"""Services of the lab: who may get a connection as each node knows it, and proxies that make it."""
