"""API server and controllers joined into one control plane, with its identities and keys."""
