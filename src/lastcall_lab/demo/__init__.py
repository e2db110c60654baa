"""The demo: shows how a node with a dozen pods shuts down."""
