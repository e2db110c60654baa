"""The ports: what the core needs from the outside, as protocols. Their docstrings say what an adapter promises."""
