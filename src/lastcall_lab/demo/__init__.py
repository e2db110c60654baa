"""The demo: a node with a dozen pods goes down before your eyes."""
