"""Who else than logind says that this machine goes down: metadata services, a socket of root's, a power supply."""
