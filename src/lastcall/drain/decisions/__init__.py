"""What a drain does next with its nodes and their pods (pure)."""
