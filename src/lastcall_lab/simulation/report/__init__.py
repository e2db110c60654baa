"""What came out of a rehearsal: text, JSON, HTML. Pure: from ``outcome.Outcome`` to the text."""
