"""Reports for people: events, the audit log, and why a pod or a node is not failed over yet."""
