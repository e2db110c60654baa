"""What is known of a pod's containers, and the status that follows from it (pure)."""
