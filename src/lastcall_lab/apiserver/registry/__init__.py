"""The registry: reads and writes of objects, from the decoded request to the store."""
