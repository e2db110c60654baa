"""What people are told: events, the audit, and why a pod or a node is not failed over yet."""
