"""What is done next for one node: the course of its failover, step by step."""
