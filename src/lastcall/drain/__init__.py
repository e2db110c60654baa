"""A node is emptied: what stands in the way of it, and in which order its pods go."""
