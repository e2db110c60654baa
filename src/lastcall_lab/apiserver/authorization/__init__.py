"""Authorization: who may do what (RBAC, the Node authorizer, impersonation, escalation checks)."""
