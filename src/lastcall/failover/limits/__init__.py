"""Limits on fencing a lost node: policies, storm limits, and machines that belong to another node."""
