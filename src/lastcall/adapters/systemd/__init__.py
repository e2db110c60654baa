"""systemd: units, notifications and the descriptor store."""
