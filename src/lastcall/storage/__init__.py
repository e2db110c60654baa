"""Reports the node's lease on shared storage, and what the node reads there about other hosts."""
