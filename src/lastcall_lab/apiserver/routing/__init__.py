"""Routes requests: from path and method to resource and verb."""
