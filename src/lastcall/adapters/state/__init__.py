"""Files that persist beyond the agent's process: its lock, journals and state directory."""
