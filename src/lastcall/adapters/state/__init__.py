"""Files that outlive the agent's process: its lock, journals and state directory."""
