"""Access to this machine: its clock, boot, files, sockets, watchdog device and storage leases."""
