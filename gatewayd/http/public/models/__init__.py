"""Model lists and model records."""
