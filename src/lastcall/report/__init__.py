"""One shutdown as a timeline: text, JSON, HTML. Pure: from the record to the text."""
