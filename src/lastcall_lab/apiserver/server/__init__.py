"""The API server: connections, HTTP, and the way of a request through all that is below."""
