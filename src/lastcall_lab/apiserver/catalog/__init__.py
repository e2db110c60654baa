"""The API server's description of itself: discovery, OpenAPI, versions."""
