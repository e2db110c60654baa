"""A rehearsal of this node's shutdown, in which nothing is ended."""
