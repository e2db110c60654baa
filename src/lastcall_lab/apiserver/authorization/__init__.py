"""Authorization: RBAC, the Node authorizer, impersonation, escalation checks, audit."""
