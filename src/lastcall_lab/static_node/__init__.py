"""One node without an API server: pods from a directory, under the agent, on a real or private logind."""
