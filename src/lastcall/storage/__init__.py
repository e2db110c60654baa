"""The agent tells of its node's lease on shared storage, and of what the node reads there of others."""
