"""The resources that are served, and the scheme that knows them all."""
