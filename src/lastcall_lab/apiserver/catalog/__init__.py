"""What the API server says about itself: discovery, OpenAPI, versions."""
