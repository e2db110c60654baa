"""JSON, YAML and Protobuf, and content negotiation."""
