"""JSON, YAML and Protobuf, and which of them a client wants."""
