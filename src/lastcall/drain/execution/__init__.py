"""The loop of a drain: it asks, waits for what becomes of it, and asks again."""
