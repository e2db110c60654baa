"""The agent's watchdog mode: the machine resets itself unless the agent renews its node's Lease, which says so."""
