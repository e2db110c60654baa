"""Authentication: bearer tokens, certificates, service accounts."""
