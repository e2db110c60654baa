"""The roles that the outside plays for the core, as protocols; their docstrings say what an adapter promises."""
