"""A node without an API server: pods from a directory, and the agent, on a real or private logind."""
