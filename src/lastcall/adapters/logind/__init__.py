"""systemd-logind over D-Bus: the delay inhibitor, its limit, and the process that holds the lock."""
