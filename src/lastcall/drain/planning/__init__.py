"""What a drain would evict, in which order, and what stands in its way (pure)."""
