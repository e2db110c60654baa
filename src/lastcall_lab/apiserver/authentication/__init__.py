"""Who asks: tokens, certificates, service accounts, impersonation."""
