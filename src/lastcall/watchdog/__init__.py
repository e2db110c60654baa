"""The agent's watchdog mode: the machine resets itself unless the node's own Lease is renewed, and the Lease says so."""
