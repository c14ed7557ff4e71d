"""Routes of model lists and model records."""
