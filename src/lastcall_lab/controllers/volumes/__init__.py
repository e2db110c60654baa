"""Controllers of volumes, claims and attachments."""
