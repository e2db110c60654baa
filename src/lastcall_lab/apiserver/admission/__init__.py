"""What stands between a request and the store: it may change an object, refuse it, or warn."""
